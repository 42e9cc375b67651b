/** Test support: says which credentials of code hosts the gateway would use for a run now. */
import type { Queryable } from '../src/platform/store/database/database.ts';
import { readGatewayRights } from '../src/runs/executions/run-tokens/present-rights.ts';

/** Returns `personal` if the run may use the personal credentials of its executor, `team` if only those of the team, otherwise `none`. */
export async function credentialsOf(db: Queryable, executionId: string): Promise<'personal' | 'team' | 'none'> {
  const rights = await readGatewayRights(db, executionId);
  if (rights?.personal.kind === 'held') return 'personal';
  return rights?.team.kind === 'held' ? 'team' : 'none';
}
