import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import https from 'node:https';
import { type Readable, Transform } from 'node:stream';
import { systemNames } from '@runyard/system/names/resolver';
import { http } from '@runyard/system/node-http';
import { agentFor, openAgents, whenOpen } from '@runyard/system/outgoing/outgoing';
import { basicAuthorization, type CodeHostCredential } from '../../../team/code-hosts/credential.ts';
import { followed, withPath } from '../../../team/code-hosts/url.ts';
import type { GitRequest } from './git-path.ts';

export interface CodeHostRequest {
  /** Clone URL of the repository. */
  readonly base: URL;
  readonly wanted: GitRequest;
  /** Headers of git's request. */
  readonly headers: IncomingHttpHeaders;
  /** Sent with a `POST`. */
  readonly body: Readable;
  readonly credential?: CodeHostCredential;
  /** Largest body, bytes. */
  readonly limit: number;
  readonly signal: AbortSignal;
}

export type CodeHostAnswer =
  | { readonly kind: 'answer'; readonly response: IncomingMessage }
  | { readonly kind: 'failed'; readonly status: 413 | 502 | 504; readonly message: string };

export interface CodeHost {
  send(request: CodeHostRequest): Promise<CodeHostAnswer>;
  readonly silenceMs: number;
  close(): void;
}

const connectMs = 10_000;
/** A server that packs a large repository may send nothing for minutes. */
const silenceMs = 600_000;
const maxRedirects = 3;
/** Time for which the gateway uses the new URL of a repository after the code host redirected a request. */
const movedMs = 300_000;
const maxRemembered = 10_000;

class TooLarge extends Error {}

/**
 * Connections to the code host. Redirects are followed for `info/refs` only, and only on the same origin. The later request for the pack
 * goes to the URL to which `info/refs` was redirected.
 */
export function openCodeHost(): CodeHost {
  const agents = openAgents({ keepAlive: true, maxFreeSockets: 8 });
  const moved = new Map<string, { base: URL; until: number }>();

  const remember = (asked: URL, base: URL): void => {
    if (moved.size >= maxRemembered) moved.clear();
    moved.set(asked.href, { base, until: Date.now() + movedMs });
  };
  const remembered = (asked: URL): URL | undefined => {
    const found = moved.get(asked.href);
    return found !== undefined && found.until > Date.now() ? found.base : undefined;
  };

  const attempt = (sent: CodeHostRequest, url: URL, method: 'GET' | 'POST'): Promise<CodeHostAnswer> =>
    new Promise((resolve) => {
      const headers: Record<string, string> = { 'accept-encoding': 'identity' };
      const forwarded =
        method === 'GET'
          ? ['accept', 'user-agent', 'git-protocol']
          : ['accept', 'user-agent', 'git-protocol', 'content-type', 'content-encoding', 'content-length'];
      for (const name of forwarded) {
        const value = sent.headers[name];
        if (typeof value === 'string') headers[name] = value;
      }
      if (sent.credential !== undefined) headers.authorization = basicAuthorization(sent.credential);
      const request = (url.protocol === 'https:' ? https : http).request(url, {
        method,
        headers,
        // Use a new connection for a pack: a reused connection may break, and a pack cannot be sent again after a part of the pack was
        // sent.
        agent: method === 'GET' ? agents.of(url) : agentFor(url),
        lookup: systemNames.lookup,
        signal: sent.signal,
      });
      const timer = setTimeout(() => request.destroy(new Error('timeout')), connectMs);
      request.setTimeout(silenceMs, () => request.destroy(new Error('timeout')));
      request.once('socket', (socket) => whenOpen(socket, () => clearTimeout(timer)));
      request.once('response', (response) => resolve({ kind: 'answer', response }));
      request.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        if (error instanceof TooLarge)
          resolve({ kind: 'failed', status: 413, message: 'got no request: the push is too large' });
        else if (error.message === 'timeout')
          resolve({ kind: 'failed', status: 504, message: 'did not answer in time' });
        else
          resolve({
            kind: 'failed',
            status: 502,
            message: `could not be reached (${error.code ?? 'connection closed'})`,
          });
      });
      if (method === 'GET') request.end();
      else sendBody(sent, request);
    });

  /** Requests `info/refs` and follows redirects. Remembers the URL of the repository. */
  const refs = async (sent: CodeHostRequest): Promise<CodeHostAnswer> => {
    const suffix = `/info/refs?service=${sent.wanted.service}`;
    let url = withPath(sent.base, suffix);
    for (let hop = 0; ; hop += 1) {
      const answer = await attempt(sent, url, 'GET');
      if (answer.kind === 'failed') return answer;
      const status = answer.response.statusCode ?? 0;
      if (status < 300 || status > 399 || status === 304) {
        if (status === 200) {
          const base = new URL(url.href);
          base.search = '';
          base.pathname = base.pathname.replace(/\/info\/refs$/, '');
          remember(sent.base, base);
        }
        return answer;
      }
      const next = followed(url, answer.response.headers.location, suffix);
      if (next === undefined || hop === maxRedirects) return answer;
      answer.response.resume();
      url = next;
    }
  };

  return {
    silenceMs,
    send: async (sent) => {
      if (sent.wanted.step === 'refs') return refs(sent);
      let base = remembered(sent.base);
      if (base === undefined) {
        // Another service process may have answered `info/refs`, so this process looks up the URL of the repository again.
        const answer = await refs(sent);
        if (answer.kind === 'failed') return answer;
        if (answer.response.statusCode !== 200) return answer;
        answer.response.destroy();
        base = remembered(sent.base) ?? sent.base;
      }
      return attempt(sent, withPath(base, `/${sent.wanted.service}`), 'POST');
    },
    close: agents.close,
  };
}

/** Forwards the body of the client's request. Stops with `TooLarge` when the body exceeds `sent.limit`. */
function sendBody(sent: CodeHostRequest, request: ClientRequest): void {
  let size = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.byteLength;
      done(size > sent.limit ? new TooLarge() : null, chunk);
    },
  });
  counted.once('error', (error) => request.destroy(error));
  request.once('close', () => {
    sent.body.unpipe(counted);
    sent.body.resume();
  });
  sent.body.once('error', (error) => request.destroy(error));
  sent.body.pipe(counted).pipe(request);
}
