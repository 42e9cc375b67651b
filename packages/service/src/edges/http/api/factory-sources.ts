import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { invalid, notFound, refuse } from '../../../platform/serving/refusal.ts';
import { removeFactorySource, setSource } from '../../../triggers/definitions/source/set.ts';
import { showSource } from '../../../triggers/definitions/source/show.ts';
import { planSyncOfStored, syncNow } from '../../../triggers/definitions/source/sync.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Never aborts: a sync that was requested continues when its client has disconnected. */
const neverAborted = new AbortController().signal;

/** Registers the repositories that contain the definitions of factories. */
export function registerFactorySourceRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  addRoute(app, routes.getFactorySource, async ({ principal, params }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    return (await showSource(deps, factory)) ?? notFound('source');
  });

  addRoute(app, routes.setFactorySource, async ({ principal, params, body }) => {
    const outcome = await setSource(deps, principal, params.factoryUid, body, neverAborted);
    switch (outcome.kind) {
      case 'set': {
        const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
        const source = await showSource(deps, factory);
        return { ...(source ? { source } : {}), sync: outcome.sync };
      }
      case 'invalid':
        return invalid([{ path: 'repository', message: outcome.message }]);
      case 'no_factory':
        return notFound('factory');
    }
  });

  addRoute(app, routes.deleteFactorySource, async ({ principal, params }) => {
    const wasThere = await removeFactorySource(deps.db, principal, params.factoryUid);
    return wasThere ? { success: true as const } : notFound('source');
  });

  addRoute(app, routes.syncFactorySource, async ({ principal, params, body }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    const outcome = await (body?.dry_run ? planSyncOfStored : syncNow)(deps, factory, neverAborted);
    if (outcome === 'no_source') return notFound('source');
    if (outcome === 'busy')
      return refuse('conflict', { detail: 'Another sync of the factory is at work. Read the source for its outcome.' });
    return outcome;
  });
}
