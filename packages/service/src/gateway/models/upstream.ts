import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { systemNames } from '../../names/resolver.ts';

/** Milliseconds. */
export interface UpstreamTimeouts {
  /** Until the connection is open, TLS included. */
  readonly connectMs: number;
  /** From then on until the headers of the answer, and between two pieces of it: a model may think for minutes. */
  readonly silenceMs: number;
  /** For the rest of an answer whose client has hung up: its last piece tells what the answer cost. */
  readonly hangUpMs: number;
}

const defaultTimeouts: UpstreamTimeouts = { connectMs: 10_000, silenceMs: 300_000, hangUpMs: 30_000 };

export interface UpstreamRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Let go by the caller after the answer began; until then it may be sent again. */
  readonly body?: { readonly parts: readonly Buffer[] };
}

/** `failed.message` has neither address nor credential in it. */
export type UpstreamResult =
  | { readonly kind: 'answer'; readonly response: IncomingMessage; readonly request: ClientRequest }
  | { readonly kind: 'failed'; readonly status: 502 | 504; readonly message: string };

/** Connections to providers, kept alive between requests. */
export interface Upstreams {
  /** Sends a request; aborting `signal` destroys it, and its answer, at any time. Follows no redirect. */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResult>;
  readonly timeouts: UpstreamTimeouts;
  close(): void;
}

class UpstreamTimeout extends Error {}

/**
 * node:http and not fetch: fetch follows its own idea of connect time (10 s, not to be set without another package), of
 * silence (bodyTimeout 300 s), of compression and of headers, and hides whether a connection was a kept one.
 */
export function openUpstreams(
  timeouts: UpstreamTimeouts = defaultTimeouts,
  lookup: LookupFunction = systemNames.lookup,
): Upstreams {
  const options = { keepAlive: true, maxFreeSockets: 32, scheduling: 'lifo' } as const;
  const plain = new http.Agent(options);
  const tls = new https.Agent(options);

  const attempt = (sent: UpstreamRequest, signal: AbortSignal, kept: boolean) =>
    new Promise<{ result: UpstreamResult } | { stale: true }>((resolve) => {
      const secure = sent.url.protocol === 'https:';
      const request = (secure ? https : http).request(sent.url, {
        method: sent.method,
        headers: sent.headers,
        agent: kept ? (secure ? tls : plain) : false,
        lookup,
        signal,
      });
      const timer = setTimeout(() => request.destroy(new UpstreamTimeout('connect')), timeouts.connectMs);
      let silence: NodeJS.Timeout | undefined;
      const connected = (): void => {
        clearTimeout(timer);
        silence = setTimeout(() => request.destroy(new UpstreamTimeout('answer')), timeouts.silenceMs);
      };
      request.once('socket', (socket) => {
        if (request.reusedSocket) connected();
        else socket.once(secure ? 'secureConnect' : 'connect', connected);
      });
      request.once('response', (response) => {
        clearTimeout(silence);
        resolve({ result: { kind: 'answer', response, request } });
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        clearTimeout(silence);
        // The provider closed a kept connection at this moment and did not read the request. It is sent once more on a
        // connection of its own, as the documentation of request.reusedSocket says.
        if (request.reusedSocket && error.code === 'ECONNRESET') resolve({ stale: true });
        else resolve({ result: failure(error) });
      });
      for (const part of sent.body?.parts ?? []) request.write(part);
      request.end();
    });

  return {
    timeouts,
    send: async (sent, signal) => {
      const first = await attempt(sent, signal, true);
      if (!('stale' in first)) return first.result;
      const second = await attempt(sent, signal, false);
      return 'stale' in second ? { kind: 'failed', status: 502, message: 'closed the connection' } : second.result;
    },
    close: () => {
      plain.destroy();
      tls.destroy();
    },
  };
}

function failure(error: NodeJS.ErrnoException): UpstreamResult {
  if (error instanceof UpstreamTimeout) {
    const message = error.message === 'connect' ? 'could not be reached in time' : 'did not answer in time';
    return { kind: 'failed', status: 504, message };
  }
  const code = typeof error.code === 'string' && /^[A-Z0-9_]{2,60}$/.test(error.code) ? ` (${error.code})` : '';
  return { kind: 'failed', status: 502, message: `could not be reached${code}` };
}
