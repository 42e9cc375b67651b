/** Waits while a service cannot work yet, because the database does not answer or because the service has a wrong data folder. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import { delay } from '@runyard/system/backoff';
import { http } from '@runyard/system/node-http';
import type { Logger } from 'pino';
import { refuse } from '../../platform/serving/refusal.ts';
import { asUnavailable, StoreUnavailable, type UnavailableReason } from '../../platform/store/database/unavailable.ts';
import { problemOf } from '../http/server/problem.ts';
import { startTrace } from '../http/server/trace.ts';

/**
 * Thrown if the service cannot work until an operator changes
 * something. `reason` may be shown to everyone. `detail` contains paths and is for the
 * log.
 */
export class NotUsable extends Error {
  override readonly name = 'NotUsable';
  readonly reason: string;
  constructor(reason: string, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/** Time between two tries. */
const retryMs = 1_000;
/** Time between two log lines about the same problem. */
const repeatMs = 60_000;
const retryAfterSeconds = 5;

interface WaitingOptions {
  readonly host: string;
  readonly port: number;
  readonly log: Pick<Logger, 'error' | 'info'>;
  /** When it aborts, the start stops waiting. */
  readonly signal: AbortSignal;
  /** Called when the port answers. `origin`: the origin of the port. */
  onOpen(origin: string): Promise<void>;
}

export interface Waiting {
  /** Does the work, and repeats it while the service is not usable. During this time the port answers 503, and `/readyz` gives the reason. */
  untilUsable<T>(work: () => Promise<T>): Promise<T>;
  /** Closes the port, so that the service can listen there. */
  close(): Promise<void>;
  /** The port that is open; 0: no port is open yet, and any port may be used. */
  port(): number;
}

/** Creates the functions with which the start of the service waits until the service can work. The port opens only if the start has to
 * wait. */
export function makeWaiting(options: WaitingOptions): Waiting {
  const { log, signal } = options;
  let port = options.port;
  let reason = '';
  let loggedAt = Number.NEGATIVE_INFINITY;
  let server: Server | undefined;

  const open = async (): Promise<void> => {
    const opened = http.createServer((request, response) => answer(request, response, reason));
    answerInTurn(opened);
    await new Promise<void>((resolve, reject) => {
      opened.once('error', reject);
      opened.listen(port, options.host, resolve);
    });
    server = opened;
    ({ port } = opened.address() as AddressInfo);
    const host = options.host.includes(':') ? `[${options.host}]` : options.host;
    await options.onOpen(`http://${host}:${port}`);
  };

  return {
    port: () => port,
    async untilUsable(work) {
      for (;;) {
        signal.throwIfAborted();
        try {
          return await work();
        } catch (thrown) {
          const error = asUnavailable(thrown, 'database');
          const found = reasonOf(error);
          if (found === undefined) throw thrown;
          if (found !== reason || performance.now() - loggedAt > repeatMs) {
            loggedAt = performance.now();
            log.error(
              { reason: found, error: (error as Error).message },
              `the service waits: ${(error as Error).message}`,
            );
          }
          reason = found;
          if (server === undefined) await open();
          await delay(retryMs, signal);
        }
      }
    },
    async close() {
      if (server === undefined) return;
      const closing = server;
      server = undefined;
      await new Promise((resolve) => {
        closing.close(resolve);
        closing.closeAllConnections();
      });
      log.info('the service does not wait any more');
    },
  };
}

const reasons = {
  disk: 'the disk of the database is full',
  database: 'the database cannot be reached; the service waits for it',
  blobs: 'the bucket of RUNYARD_BLOBS cannot be reached; the service waits for it',
} as const satisfies Record<UnavailableReason, string>;

/**
 * Returns the reason for `/readyz`; undefined if waiting cannot help. The error message of a driver may contain addresses, so only the log
 * has this message.
 */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof NotUsable) return error.reason;
  if (error instanceof StoreUnavailable) return reasons[error.reason];
  return undefined;
}

function answer(request: IncomingMessage, response: ServerResponse, reason: string): void {
  const send = (status: number, type: string, body: object): void => {
    response.writeHead(status, {
      'content-type': `application/${type}; charset=utf-8`,
      'cache-control': 'no-store',
      connection: 'close',
      ...(status === 503 ? { 'retry-after': String(retryAfterSeconds) } : {}),
    });
    response.end(JSON.stringify(body));
  };
  request.resume();
  const path = request.url?.split('?')[0];
  if (path === '/healthz') {
    send(200, 'json', { status: 'ok' });
    return;
  }
  if (path === '/readyz') {
    send(503, 'json', { status: 'not_ready', reason });
    return;
  }
  const detail = `The service is not ready: ${reason}. Send the request again after Retry-After seconds.`;
  const refusal = refuse('resource_unavailable', { status: 503, detail });
  send(503, 'problem+json', problemOf(refusal, '', path ?? '/', startTrace(undefined).traceId));
}
