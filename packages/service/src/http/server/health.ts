import type { FastifyInstance } from 'fastify';
import { readMigrations } from '../../store/migrations/migrate.ts';
import type { ServiceDeps } from './deps.ts';

/** How long the database may take to answer. */
const patienceMs = 2_000;

/**
 * Registers `/healthz` (the process answers) and `/readyz` (its database answers and has all migrations of this code).
 * Load balancers send requests by the second.
 */
export function registerHealthRoutes(app: FastifyInstance, { db, log }: ServiceDeps): void {
  const expected = readMigrations().then((migrations) => migrations.map(({ name }) => name));
  expected.catch(() => undefined);

  app.get('/healthz', async (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }));

  app.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    const timeout = AbortSignal.timeout(patienceMs);
    const isLate = new Promise<never>((_, reject) => {
      timeout.addEventListener('abort', () => reject(new Error(`the database did not answer within ${patienceMs} ms`)));
    });
    try {
      const applied = await Promise.race([db.query<{ name: string }>('SELECT name FROM schema_migrations'), isLate]);
      const names = new Set(applied.map(({ name }) => name));
      const missing = (await expected).filter((name) => !names.has(name));
      if (missing.length === 0) return await reply.send({ status: 'ready' });
      return await reply
        .code(503)
        .send({ status: 'not_ready', reason: `migrations not applied: ${missing.join(', ')}` });
    } catch (error) {
      log.warn({ err: error }, 'not ready');
      return await reply.code(503).send({ status: 'not_ready', reason: 'the database does not answer' });
    }
  });
}
