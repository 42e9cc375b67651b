import type { FastifyInstance } from 'fastify';
import { readMigrations } from '../../store/migrations/migrate.ts';
import type { ServiceDeps } from './deps.ts';

/** How long the database may take to answer. */
const patienceMs = 2_000;

/**
 * Registers `/healthz` (the process answers) and `/readyz` (its database answers and has all migrations of this code; `reason`
 * says why not, and `degraded` what does not work although it is ready). Load balancers send requests by the second.
 */
export function registerHealthRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, log } = deps;
  const expected = readMigrations().then((migrations) => migrations.map(({ name }) => name));
  expected.catch(() => undefined);

  app.get('/healthz', async (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }));

  app.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    const notReady = (reason: string) => reply.code(503).send({ status: 'not_ready', reason });
    const isDown = deps.databaseProblem();
    if (isDown !== null) return await notReady(isDown);
    const timeout = AbortSignal.timeout(patienceMs);
    const isLate = new Promise<never>((_, reject) => {
      timeout.addEventListener('abort', () => reject(new Error(`the database did not answer within ${patienceMs} ms`)));
    });
    try {
      const applied = await Promise.race([db.query<{ name: string }>('SELECT name FROM schema_migrations'), isLate]);
      const names = new Set(applied.map(({ name }) => name));
      const missing = (await expected).filter((name) => !names.has(name));
      if (missing.length > 0) return await notReady(`migrations not applied: ${missing.join(', ')}`);
      // Ready all the same: it reads, and what runs goes on.
      const isFull = deps.freeSpace.problem();
      return await reply.send({ status: 'ready', ...(isFull === null ? {} : { degraded: isFull }) });
    } catch (error) {
      log.warn({ err: error }, 'not ready');
      return await notReady('the database does not answer');
    }
  });
}
