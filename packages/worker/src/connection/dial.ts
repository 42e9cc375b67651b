import { webSocketAgent } from '@runyard/system/outgoing/tunnel';
import { untrustedCertificate } from '@runyard/system/untrusted-certificate';
import { WebSocket } from 'ws';
import { readDetail, withoutWebSocket } from './refusal.ts';

const pingEveryMs = 10_000;
const silenceMs = 25_000;
const handshakeMs = 10_000;
/** Maximum number of bytes of a message. A prompt may have 1 MB, and its JSON text may be six times as long. */
const longestMessage = 16 * 1024 * 1024;

export interface DialOptions {
  readonly url: string;
  readonly key: string;
  /** Closes the connection. */
  readonly stop: AbortSignal;
  readonly onOpen: (socket: WebSocket) => void;
  readonly onMessage: (data: string) => void;
}

/**
 * How a connection ended. `refused`: the service refused the key, with this status and text. `lost`: the reason; undefined after `stop`.
 */
export type DialOutcome =
  | { readonly kind: 'refused'; readonly status: 401 | 403; readonly detail: string }
  | { readonly kind: 'lost'; readonly why: string | undefined };

/** Opens a WebSocket, and resolves when it has closed. Closes a connection on which nothing arrives, because the other end may be gone. */
export function dial({ url, key, stop, onOpen, onMessage }: DialOptions): Promise<DialOutcome> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, {
      headers: { authorization: `Bearer ${key}` },
      handshakeTimeout: handshakeMs,
      maxPayload: longestMessage,
      perMessageDeflate: false,
      followRedirects: false,
      ...webSocketAgent(new URL(url)),
    });
    let heard = performance.now();
    let status: number | undefined;
    let detail = '';
    let problem = '';
    const beat = setInterval(() => {
      if (performance.now() - heard > silenceMs) socket.terminate();
      else if (socket.readyState === WebSocket.OPEN) socket.ping('0');
    }, pingEveryMs);
    const hear = (): void => {
      heard = performance.now();
    };
    socket.on('unexpected-response', (_request, response) => {
      status = response.statusCode;
      readDetail(response).then((said) => {
        detail = said;
        socket.terminate();
      });
    });
    socket.on('open', () => {
      hear();
      onOpen(socket);
    });
    socket.on('message', (data, isBinary) => {
      hear();
      if (!isBinary) onMessage(data.toString());
    });
    socket.on('ping', hear);
    socket.on('pong', hear);
    socket.on('error', (error) => {
      problem = untrustedCertificate(error) ?? error.message;
    });
    const onStop = (): void => (socket.readyState === WebSocket.OPEN ? socket.close(1000) : socket.terminate());
    socket.on('close', (code, reason) => {
      clearInterval(beat);
      stop.removeEventListener('abort', onStop);
      if (stop.aborted) return resolve({ kind: 'lost', why: undefined });
      if (status === 401 || status === 403) return resolve({ kind: 'refused', status, detail });
      const why =
        status === undefined
          ? problem || `closed with code ${code} ${reason.toString()}`.trim()
          : `HTTP status ${status}${withoutWebSocket(status, detail)}`;
      resolve({ kind: 'lost', why });
    });
    stop.addEventListener('abort', onStop, { once: true });
  });
}
