import { maxPoolConnectors } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { workerName } from '@runyard/contract/workers/worker-name';
import { notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { type FindWaiting, withWaiting } from './contents/waiting-after-change.ts';
import { serve } from './serve.ts';
import {
  addConnector,
  deletePool,
  listPools,
  type PoolRefusal,
  removeConnector,
  takeOverPool,
  uidOfPool,
} from './worker-pools/pools.ts';

function refusePool(reason: PoolRefusal): Refusal {
  switch (reason) {
    case 'not_found':
      return notFound('pool of workers');
    case 'not_owner':
      return refuse('not_authorized', { detail: 'Only the owner of the pool and administrators may change it.' });
    case 'no_such_principal':
      return notFound('person who runs workers, agent identity or agent key');
    case 'too_many':
      return refuse('conflict', { detail: `A pool has at most ${maxPoolConnectors} connectors; remove one.` });
  }
}

/** Returns whether these texts can be the name of a pool and the UID of a person or service account. */
const isNamed = ({ poolName, principalUid = '' }: { readonly poolName: string; readonly principalUid?: string }) =>
  workerName.test(poolName) && /^[\w-]{0,200}$/.test(principalUid);

/** Routes of the pools of self-hosted workers and of their connection rights. */
export const workerPoolRoutes = ({
  db,
  findWaiting,
}: {
  readonly db: Database;
  readonly findWaiting: FindWaiting;
}): readonly ServedRoute[] => [
  serve(routes.listWorkerPools, async ({ principal }) => ({ pools: await listPools(db, principal.teamId) })),

  serve(routes.addWorkerPoolConnector, async ({ principal, params }) => {
    if (!isNamed(params)) return refusePool('not_found');
    const outcome = await addConnector(db, principal, params.poolName, params.principalUid);
    if (typeof outcome === 'string') return refusePool(outcome);
    return await withWaiting(
      outcome,
      findWaiting(db, principal, 'worker_pool', uidOfPool(principal.teamId, outcome.name)),
    );
  }),

  serve(routes.takeOverWorkerPool, async ({ principal, params }) => {
    if (!isNamed(params)) return refusePool('not_found');
    const outcome = await takeOverPool(db, principal, params.poolName);
    if (outcome === 'not_found') return refusePool(outcome);
    return await withWaiting(
      outcome,
      findWaiting(db, principal, 'worker_pool', uidOfPool(principal.teamId, outcome.name)),
    );
  }),

  serve(routes.removeWorkerPoolConnector, async ({ principal, params }) => {
    if (!isNamed(params)) return refusePool('not_found');
    const outcome = await removeConnector(db, principal, params.poolName, params.principalUid);
    return outcome === 'removed' ? { success: true as const } : refusePool(outcome);
  }),

  serve(routes.deleteWorkerPool, async ({ principal, params }) => {
    if (!isNamed(params)) return refusePool('not_found');
    const outcome = await deletePool(db, principal, params.poolName);
    return outcome === 'deleted' ? { success: true as const } : refusePool(outcome);
  }),
];
