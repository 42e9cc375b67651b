import type { FastifyInstance } from 'fastify';
import type { Readiness } from '../../platform/domain.ts';
import { reading } from '../../platform/metrics/gauges.ts';
import { makeRateLimits } from '../../team/access/rate-limits/rate-limits.ts';
import type { Edge } from '../edge.ts';
import { registerIngress } from './ingress/webhooks.ts';
import { registerMetrics } from './metrics.ts';
import { showNotFound } from './pages/not-found-page.ts';
import { bearerToken, makeAuthorizer } from './server/authorize.ts';
import { connectionLimits, limitConnections, openFilesLimit } from './server/connection-limits.ts';
import type { ServiceDeps } from './server/deps.ts';
import { type ClientTimeouts, defaultTimeouts, ingressTimeouts, makeApp } from './server/make-app.ts';
import { mountRoutes } from './server/mount-routes.ts';

/** Builds the HTTP side of the service with the routes of the domains. No request is answered before the app listens. */
export async function buildApp(
  deps: ServiceDeps,
  domains: readonly Edge[],
  timeouts: ClientTimeouts = defaultTimeouts,
): Promise<FastifyInstance> {
  const { db, keys, bodies, settings } = deps;
  const authorizer = makeAuthorizer(db, keys, makeRateLimits(settings), deps.baseUrl, () => deps.pause.since !== null);
  const app = makeApp(deps, { authorizer, bodies, timeouts, showNotFound });
  limitConnections(app, connectionLimits(openFilesLimit()), async ({ headers }) => {
    const principal = await keys.authenticate(bearerToken(headers.authorization ?? ''));
    return principal?.isOperator === true;
  });
  const checks = domains.flatMap(({ readiness }) => readiness ?? []);
  registerHealthRoutes(app, checks);
  deps.metrics?.addGauges([
    async () => [reading('runyard_ready', {}, (await findProblem(checks)) === null ? 1 : 0)],
    ...domains.flatMap(({ gauges }) => gauges ?? []),
  ]);
  registerMetrics(app, deps);
  mountRoutes(
    app,
    db,
    domains.flatMap((domain) => domain.routes?.() ?? []),
  );
  for (const domain of domains) await domain.endpoints?.(app);
  return app;
}

/** Maximum of connections on the separate port for senders. A slow request ends by itself within seconds. */
const maxSenders = 4_000;

/** Builds an app that only accepts deliveries to webhooks. The app answers no request before it listens. */
export function buildIngressApp(deps: ServiceDeps, timeouts: ClientTimeouts = ingressTimeouts): FastifyInstance {
  const { db, keys, bodies, settings } = deps;
  const app = makeApp(deps, {
    authorizer: makeAuthorizer(db, keys, makeRateLimits(settings), deps.baseUrl, () => deps.pause.since !== null),
    bodies,
    timeouts,
  });
  app.server.maxConnections = maxSenders;
  // Idle connections, which only wait for a next request, are closed so that they do not use up the limit.
  app.server.on('drop', () => app.server.closeIdleConnections());
  registerIngress(app, deps);
  return app;
}

/** Returns why requests cannot be served, or null if they can. */
async function findProblem(checks: readonly Readiness[]): Promise<string | null> {
  for (const { problem } of checks) {
    const reason = (await problem?.()) ?? null;
    if (reason !== null) return reason;
  }
  return null;
}

/**
 * Registers `/healthz` (the process answers) and `/readyz`, which runs the checks that the domains registered. `reason` says why requests
 * cannot be served. `degraded` names a part that does not work although requests are served. Load balancers ask every second.
 */
function registerHealthRoutes(app: FastifyInstance, checks: readonly Readiness[]): void {
  app.get('/healthz', async (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }));

  app.get('/readyz', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    const reason = await findProblem(checks);
    if (reason !== null) return await reply.code(503).send({ status: 'not_ready', reason });
    const degraded = checks.flatMap((check) => check.degraded?.() ?? []);
    return await reply.send({ status: 'ready', ...(degraded.length === 0 ? {} : { degraded: degraded.join('; ') }) });
  });
}
