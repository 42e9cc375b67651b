import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { agentFor } from '@runyard/system/outgoing/outgoing';

/** Longest wait for an answer, if the probe names no other. */
export const answerMs = 10_000;

/** A request that asks a service or the proxy in front of it. */
export interface Probe {
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Buffer;
  readonly timeoutMs?: number;
  /** If it is true, only the first text of the answer is read. */
  readonly isStream?: true;
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly location?: string | undefined;
  readonly text: string;
  /** Local IP address from which the request was sent. */
  readonly localAddress: string | undefined;
  /** Time until which the certificate is valid. */
  readonly validTo?: string | undefined;
}

/** Sends a request and returns the answer. Throws if no answer comes. If the server accepts an upgrade to WebSocket, the status is 101. */
export function ask(origin: string, probe: Probe): Promise<Answer> {
  const url = new URL(`${origin}${probe.path}`);
  const { request: send } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http');
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers, body, timeoutMs = answerMs, isStream } = probe;
    const length = body === undefined ? {} : { 'content-length': body.length };
    const request = send(url, { method, agent: agentFor(url), headers: { ...headers, ...length } });
    let answered: Omit<Answer, 'text'> | undefined;
    let text = '';
    const finish = () => {
      clearTimeout(late);
      if (answered) resolve({ ...answered, text });
      else reject(new Error(`no answer within ${timeoutMs / 1000} s`));
      request.destroy();
    };
    const late = setTimeout(finish, timeoutMs);
    const begin = ({ socket, statusCode: status = 0, headers }: IncomingMessage) => {
      const { 'content-type': type = '', location } = headers;
      const certificate = 'getPeerCertificate' in socket ? (socket as TLSSocket).getPeerCertificate() : undefined;
      answered = { status, type, location, localAddress: socket.localAddress, validTo: certificate?.valid_to };
    };
    request.on('response', (response) => {
      begin(response);
      response.setEncoding('utf8').on('data', (piece: string) => {
        if (text.length < 100_000) text += piece;
        if (isStream) finish();
      });
      response.on('end', finish).on('error', finish);
    });
    request.on('upgrade', (response) => {
      begin(response);
      finish();
    });
    request.on('error', (error) => {
      clearTimeout(late);
      // Ignores errors after the answer, because a proxy that refuses a body may close the connection before the whole body was sent.
      if (!answered) reject(error);
    });
    request.end(body);
  });
}
