import { routes } from '@runyard/contract/routes';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isOperatorHere } from '../../team/access/keys/operator.ts';
import { serve } from '../../team/access/serve.ts';
import { listConnectedWorkers, listHostedWorkers } from './connected.ts';

/** The routes that list the connected workers and the addresses of the installation's workers. */
export const workerRoutes = (db: Database, egressRanges: readonly string[]): readonly ServedRoute[] => [
  serve(routes.listConnectedWorkers, async ({ principal }) => ({
    workers: await listConnectedWorkers(db, principal.teamId),
    ...((await isOperatorHere(db, principal)) ? { hosted_workers: await listHostedWorkers(db) } : {}),
  })),
  serve(routes.getEgressRanges, async () => ({ cidrs: [...egressRanges] })),
];
