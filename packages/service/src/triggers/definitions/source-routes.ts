import { routes } from '@runyard/contract/routes';
import { invalid, notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { serve } from '../../team/access/serve.ts';
import type { CodeHosts } from '../../team/code-hosts/code-hosts.ts';
import { removeFactorySource, setSource } from './source/set.ts';
import { showSource } from './source/show.ts';
import { planSyncOfStored, type SyncDeps, syncNow } from './source/sync.ts';

/** Never aborts: a sync that was requested continues when its client has disconnected. */
const neverAborted = new AbortController().signal;

interface SourceRouteDeps extends SyncDeps {
  readonly codeHosts: CodeHosts;
}

/** The repositories that contain the definitions of factories. */
export const sourceRoutes = (deps: SourceRouteDeps): readonly ServedRoute[] => [
  serve(routes.getFactorySource, async ({ principal, params }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    return (await showSource(deps, factory)) ?? notFound('source');
  }),

  serve(routes.setFactorySource, async ({ principal, params, body }) => {
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
  }),

  serve(routes.deleteFactorySource, async ({ principal, params }) => {
    const wasThere = await removeFactorySource(deps.db, principal, params.factoryUid);
    return wasThere ? { success: true as const } : notFound('source');
  }),

  serve(routes.syncFactorySource, async ({ principal, params, body }) => {
    const factory = { teamId: principal.teamId, factoryUid: params.factoryUid };
    const outcome = await (body?.dry_run ? planSyncOfStored : syncNow)(deps, factory, neverAborted);
    if (outcome === 'no_source') return notFound('source');
    if (outcome === 'busy')
      return refuse('conflict', { detail: 'Another sync of the factory is at work. Read the source for its outcome.' });
    return outcome;
  }),
];
