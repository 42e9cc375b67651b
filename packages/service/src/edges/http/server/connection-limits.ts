/** Limits connections, so that they never use all file descriptors of the process. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { refuse } from '../../../platform/serving/refusal.ts';

/** Open files of a process if the system does not report its limit. */
const usualOpenFiles = 1_024;

/** Returns how many files and connections this process can have open. Node raises the soft limit to the hard limit when it starts. */
export function openFilesLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined ? usualOpenFiles : Number(limit);
  } catch {
    return usualOpenFiles;
  }
}

export interface ConnectionLimits {
  /** Above this number, further connections are closed at once. */
  readonly most: number;
  /** Above this number, only the operator and probes are answered. */
  readonly crowded: number;
}

/**
 * Returns the limits for a process that can open `openFiles` files. A quarter of the files, at most 1,000, is reserved for the database,
 * blobs, secrets and providers. A sixteenth of the connections, at most 100, is reserved for the operator and probes.
 */
export function connectionLimits(openFiles: number): ConnectionLimits {
  const most = openFiles - Math.min(1_000, Math.floor(openFiles / 4));
  return { most, crowded: most - Math.min(100, Math.floor(most / 16)) };
}

const probes: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/**
 * Closes connections above the limits, and idle connections first. When almost all connections are in use, requests get 503 unless they are
 * probes or have a key of the operator.
 */
export function limitConnections(
  app: FastifyInstance,
  { most, crowded }: ConnectionLimits,
  isOperator: (request: FastifyRequest) => Promise<boolean>,
): void {
  const { server } = app;
  let open = 0;
  server.maxConnections = most;
  server.on('connection', (socket: Socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
    // Close idle connections first: no request of their clients is in progress.
    if (open > crowded) server.closeIdleConnections();
  });
  server.on('drop', () => server.closeIdleConnections());
  app.addHook('onRequest', async (request) => {
    if (open <= crowded || probes.has(request.url.split('?', 1)[0] ?? '') || (await isOperator(request))) return;
    throw refuse('resource_unavailable', {
      status: 503,
      detail: `The service has ${open} open connections, of at most ${most}. Close event streams that are not needed, or raise the limit of open files.`,
      headers: { 'retry-after': '5', connection: 'close' },
    });
  });
}
