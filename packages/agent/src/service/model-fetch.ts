import { Readable } from 'node:stream';
import { storableJson } from '@runyard/contract/wire/storable-json';
import type { Lane, ServiceConnection } from './connection.ts';

export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/**
 * Returns a `fetch` for the AI SDK over the connection to the service. A request fails only after `idleTimeoutMs` without a byte. Node's
 * own fetch ends a body after 300 s without a byte and cannot use a Unix socket.
 */
export function modelFetch(connection: ServiceConnection, idleTimeoutMs: number, lane: Lane = 'work'): Fetch {
  const root = new URL(connection.serverRoot);
  const basePath = root.pathname.replace(/\/+$/, '');
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== root.origin) throw new TypeError(`models are reached through ${root.origin}, not ${url.origin}`);
    const headers = Object.fromEntries(new Headers(init.headers));
    // The clients of the providers send the token in their own headers, but the service reads only this header.
    headers.authorization = `Bearer ${connection.token}`;
    const answer = await connection.open({
      method: (init.method ?? 'GET') as 'GET' | 'POST' | 'DELETE',
      path: url.pathname.slice(basePath.length) + url.search,
      headers,
      body: bodyOf(init.body),
      signal: init.signal ?? undefined,
      idleTimeoutMs,
      lane,
    });
    const status = answer.statusCode ?? 502;
    const empty = status === 204 || status === 205 || status === 304;
    const answerHeaders = new Headers();
    for (const [name, value] of Object.entries(answer.headers)) {
      if (value !== undefined) answerHeaders.set(name, Array.isArray(value) ? value.join(', ') : value);
    }
    const body = empty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
    return new Response(body, { status, statusText: answer.statusMessage ?? '', headers: answerHeaders });
  };
}

/**
 * Finds a lone half of a surrogate pair in the form in which JSON.stringify writes it. Providers refuse a request with such a half.
 * They would also refuse all later requests of the conversation, because each request contains the earlier messages.
 */
const loneSurrogate = /\\ud[89a-f]/i;

function bodyOf(body: RequestInit['body']): string | Uint8Array | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string') return loneSurrogate.test(body) ? storableJson(JSON.parse(body)) : body;
  if (body instanceof Uint8Array) return body;
  throw new TypeError('only text and bytes can be sent to a model');
}
