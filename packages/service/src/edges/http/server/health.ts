import type { FastifyInstance } from 'fastify';
import type { Readiness } from '../../../platform/domain.ts';

/**
 * Registers `/healthz` (the process answers) and `/readyz`, which runs the checks that the domains registered: `reason` is why requests
 * cannot be served, `degraded` is the part that does not work although they are. Load balancers ask every second.
 */
export function registerHealthRoutes(app: FastifyInstance, checks: readonly Readiness[]): void {
  app.get('/healthz', async (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }));

  app.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    for (const { problem } of checks) {
      const reason = (await problem?.()) ?? null;
      if (reason !== null) return await reply.code(503).send({ status: 'not_ready', reason });
    }
    const degraded = checks.flatMap((check) => check.degraded?.() ?? []);
    return await reply.send({ status: 'ready', ...(degraded.length === 0 ? {} : { degraded: degraded.join('; ') }) });
  });
}
