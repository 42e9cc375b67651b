import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Authorizer } from './authorize.ts';
import { shownPath } from './shown-path.ts';
import { traceOf } from './trace.ts';

/**
 * Logs one line for each request when it is answered, without headers and query, which hold keys and signatures. Health
 * checks and successful requests are logged at `debug`, so that the usual level shows only lines that need attention.
 */
export function logRequests(app: FastifyInstance, authorizer: Authorizer, log: Logger): void {
  app.addHook('onResponse', async (request, reply) => {
    const level = reply.statusCode >= 500 ? 'warn' : reply.statusCode >= 400 ? 'info' : 'debug';
    if (!log.isLevelEnabled(level)) return;
    const { principal, session } = authorizer.callerOf(request);
    request.log[level](
      {
        method: request.method,
        path: shownPath(request),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        trace_id: traceOf(request).traceId,
        ...(principal ? { key_id: principal.keyId } : {}),
        ...(session ? { run_id: session.runId, execution_id: session.executionId } : {}),
      },
      'request',
    );
  });
}
