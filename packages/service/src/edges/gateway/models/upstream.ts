import type { ClientRequest, IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { backoffMs, delay } from '@runyard/system/backoff';
import { systemNames } from '@runyard/system/names/resolver';
import { http } from '@runyard/system/node-http';
import { agentFor, openAgents, whenOpen } from '@runyard/system/outgoing/outgoing';
import { connectionReason } from '../../../team/models/connection-reason.ts';
import { lookupFor, type Upstream } from '../../../team/models/providers.ts';

/** Milliseconds. */
export interface UpstreamTimeouts {
  /** Limit until the connection is open, TLS included. */
  readonly connectMs: number;
  /** Limit for all tries to connect together. A request that did not reach the provider had no effect, so it can be sent again. */
  readonly reachMs: number;
  /** Limit from the open connection to the headers of the answer, and between two pieces of the answer. A model may work for minutes. */
  readonly silenceMs: number;
  /** Limit for the remaining answer after the client has disconnected. The gateway reads on because the last piece contains the usage. */
  readonly hangUpMs: number;
}

const defaultTimeouts: UpstreamTimeouts = { connectMs: 8_000, reachMs: 12_000, silenceMs: 300_000, hangUpMs: 30_000 };

export interface UpstreamRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Until the answer begins, the parts may be sent again. The caller releases them after that. */
  readonly body?: { readonly parts: readonly Buffer[] };
  /** Time for all tries to connect together, if it is shorter than `reachMs` of `timeouts`. */
  readonly reachMs?: number;
  /** Present: the address is checked before each connection. */
  readonly check?: Upstream['check'];
}

/**
 * `failed`: the connection was open, and no answer came. `unreachable`: no connection could be opened, or the connection broke at once, for
 * example because the far end of a tunnel is dead. The messages of these outcomes contain neither addresses nor credentials.
 */
export type UpstreamResult =
  | { readonly kind: 'answer'; readonly response: IncomingMessage; readonly request: ClientRequest }
  | {
      readonly kind: 'failed' | 'unreachable';
      readonly status: 502 | 504;
      readonly message: string;
      /** True: the connection was open, so the provider may have the request. */
      readonly isSent: boolean;
    };

/** If a connection breaks this soon after it was opened, the gateway assumes that the connection did not reach a provider. */
const atOnceMs = 1_000;

/** Pauses between two tries to connect. */
const reachBackoff = { firstMs: 250, longestMs: 3_000 };

/** Connections to providers, kept alive between requests. */
export interface Upstreams {
  /** Sends a request; aborting `signal` destroys the request and its answer at any time. Follows no redirect. */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResult>;
  readonly timeouts: UpstreamTimeouts;
  /**
   * Base URLs of endpoints that refused `stream_options`, each with the time, `performance.now()`, until which requests omit
   * `stream_options`.
   */
  readonly plainUntil: Map<string, number>;
  close(): void;
}

class UpstreamTimeout extends Error {}

/**
 * Uses node:http instead of fetch. fetch has its own connect time (10 s, which only another package can change), its own limit of silence
 * (bodyTimeout 300 s), and its own compression and headers. It also hides whether a connection was reused.
 */
export function openUpstreams(
  timeouts: UpstreamTimeouts = defaultTimeouts,
  lookup: LookupFunction = systemNames.lookup,
): Upstreams {
  const options = { keepAlive: true, maxFreeSockets: 32, scheduling: 'lifo' } as const;
  const agents = openAgents(options);
  // A request whose address is checked must not get a connection that was opened without the check.
  const checkedAgents = openAgents(options);

  const attempt = async (sent: UpstreamRequest, signal: AbortSignal, reuse: boolean, connectMs: number) => {
    let names = lookup;
    try {
      if (sent.check) names = await lookupFor(sent, sent.url, signal);
    } catch (error) {
      return { result: unreachable(error as NodeJS.ErrnoException) };
    }
    return await exchange(sent, names, signal, reuse, connectMs);
  };

  const exchange = (
    sent: UpstreamRequest,
    names: LookupFunction,
    signal: AbortSignal,
    reuse: boolean,
    connectMs: number,
  ) =>
    new Promise<{ result: UpstreamResult } | { stale: true }>((resolve) => {
      const request = (sent.url.protocol === 'https:' ? https : http).request(sent.url, {
        method: sent.method,
        headers: sent.headers,
        agent: reuse ? (sent.check ? checkedAgents : agents).of(sent.url) : agentFor(sent.url),
        lookup: names,
        signal,
      });
      const timer = setTimeout(() => request.destroy(new UpstreamTimeout('connect')), connectMs);
      let connectedAt: number | undefined;
      let silence: NodeJS.Timeout | undefined;
      const connected = (): void => {
        connectedAt = performance.now();
        clearTimeout(timer);
        silence = setTimeout(() => request.destroy(new UpstreamTimeout('answer')), timeouts.silenceMs);
      };
      request.once('socket', (socket) => whenOpen(socket, connected));
      request.once('response', (response) => {
        clearTimeout(silence);
        resolve({ result: { kind: 'answer', response, request } });
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        clearTimeout(silence);
        // The provider closed a reused connection at this moment and did not read the request. Send it once more on a new connection,
        // as the documentation of request.reusedSocket says.
        if (request.reusedSocket && error.code === 'ECONNRESET') resolve({ stale: true });
        else resolve({ result: connectedAt === undefined ? unreachable(error) : broken(error, connectedAt) });
      });
      for (const part of sent.body?.parts ?? []) request.write(part);
      request.end();
    });

  return {
    timeouts,
    plainUntil: new Map(),
    send: async (sent, signal) => {
      const started = performance.now();
      const reachMs = Math.min(timeouts.reachMs, sent.reachMs ?? timeouts.reachMs);
      let refused: UpstreamResult | undefined;
      for (let tries = 1, reuse = true; ; tries++) {
        const leftMs = reachMs - (performance.now() - started);
        const tried = await attempt(sent, signal, reuse, Math.max(1, Math.min(timeouts.connectMs, leftMs)));
        if ('stale' in tried) {
          if (!reuse) return { kind: 'failed', status: 502, message: 'closed the connection', isSent: true };
          reuse = false;
          continue;
        }
        const waitMs = backoffMs(reachBackoff, tries);
        const isTimeLeft = performance.now() - started + waitMs < reachMs;
        // The last try may have failed only because it had little time. In this case, report the failure of an earlier try.
        if (tried.result.kind === 'unreachable' && tried.result.status !== 504) refused = tried.result;
        if (tried.result.kind !== 'unreachable') return tried.result;
        if (!isTimeLeft || signal.aborted) return refused ?? tried.result;
        // If the signal aborts the wait, it also fails the next try at once.
        await delay(waitMs, signal).catch(() => {});
      }
    },
    close: () => {
      agents.close();
      checkedAgents.close();
    },
  };
}

function unreachable(error: NodeJS.ErrnoException): UpstreamResult {
  if (error instanceof UpstreamTimeout)
    return { kind: 'unreachable', status: 504, message: 'cannot be reached: no connection in time', isSent: false };
  return { kind: 'unreachable', status: 502, message: `cannot be reached${connectionReason(error)}`, isSent: false };
}

function broken(error: NodeJS.ErrnoException, connectedAt: number): UpstreamResult {
  if (error instanceof UpstreamTimeout)
    return { kind: 'failed', status: 504, message: 'did not answer in time', isSent: true };
  const kind = performance.now() - connectedAt < atOnceMs ? 'unreachable' : 'failed';
  return { kind, status: 502, message: `broke the connection off${connectionReason(error)}`, isSent: true };
}
