import type { Repository } from '@runyard/contract/environments/repositories';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { hostRulesFeature } from '@runyard/contract/workers/worker-protocol';
import type { Fault } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../../platform/store/database/statement.ts';
import { servesPool, takesRuns } from '../../executions/queue/may-take.ts';
import { workerHostOf } from './request-config.ts';

/**
 * SQL: the sandboxes of the worker `c` have only the network that its proxy gives them, and the proxy asks the service. Public workers
 * report no features.
 */
const isAble = (c: string): string =>
  `coalesce(${c}.sandbox->'features' ?& ARRAY['${hostRulesFeature}', 'no-network'], false)`;

const readAble = defineStatement({
  name: 'read_workers_for_fresh_checks',
  text: `
    SELECT count(*) = 0 OR bool_or(${isAble('c')}) AS is_able FROM worker_connections c
    WHERE ${servesPool('c', '$1', '$2')} AND ${takesRuns('c')}`,
  row: { is_able: boolean },
});

/** Returns false if workers of the pool are connected and none of them can run checks in fresh sandboxes. */
export async function canRunFreshChecks(
  db: Queryable,
  { teamId, config }: { readonly teamId: string; readonly config: AmbientAgentConfig },
): Promise<boolean> {
  const [row] = await db.query(readAble, [workerHostOf(config) ?? '', teamId]);
  return row?.is_able ?? true;
}

/** Returns whether the setup clones the repository. */
const isCloned = (repository: Repository & { readonly checkout?: boolean | undefined }): boolean =>
  repository.checkout !== false;

/** Returns the faults of checks in fresh sandboxes: they need a repository that the run clones, and workers with such sandboxes. */
export async function faultsOfFreshChecks(
  db: Queryable,
  { teamId, config }: { readonly teamId: string; readonly config: AmbientAgentConfig },
  repositories: readonly Repository[],
): Promise<Fault[]> {
  const index = config.checks?.findIndex(({ fresh }) => fresh === true) ?? -1;
  if (index === -1) return [];
  const path = `config.checks.${index}.fresh`;
  if (!repositories.some(isCloned))
    return [{ path, message: 'needs an environment with a repository, whose commit is the base of the check' }];
  if (await canRunFreshChecks(db, { teamId, config })) return [];
  const message =
    'is not available: no connected worker of this pool has sandboxes that can be cut off from the network. Use a Runyard worker with the backend bubblewrap, gvisor or docker';
  return [{ path, message }];
}
