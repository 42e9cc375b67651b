import type { ExecutionDeps } from '../../executions/deps.ts';
import { holdsSlot } from '../../executions/queue/holds-slot.ts';
import { isOfPool, servesPool } from '../../executions/queue/serves-pool.ts';
import type { Queryable } from '../../store/database/database.ts';
import { boolean, defineStatement, nullable } from '../../store/database/statement.ts';
import type { NewRun } from './new-run.ts';

/** True where a run would have to wait: the team's limit is reached, or no connected worker of the pool has a free slot. */
const readCapacity = defineStatement({
  name: 'read_at_capacity',
  text: `
    SELECT (SELECT count(*) FROM executions e WHERE e.team_id = $1 AND ${holdsSlot('e')}) >= t.max_concurrent_executions
      OR coalesce((SELECT sum(coalesce(slots, 1000)) FROM worker_connections
                   WHERE NOT draining AND ${servesPool('worker_connections', '$2', '$1')}), 0)
         <= (SELECT count(*) FROM executions e WHERE ${isOfPool('e', '$2', '$1')} AND ${holdsSlot('e')}) AS at_capacity
    FROM teams t WHERE t.id = $1`,
  row: { at_capacity: nullable(boolean) },
});

const maxAgeMs = 1000;
/** By team and pool. */
type Answers = Map<string, { readonly readAt: number; readonly value: Promise<boolean> }>;
const answersOf = new WeakMap<ExecutionDeps, Answers>();

/** Returns true where the run would have to wait. The answer is at most a second old: it is a hint for the caller only. */
export function isAtCapacity(
  deps: ExecutionDeps,
  db: Queryable,
  { teamId, workerHost = '' }: Pick<NewRun, 'teamId' | 'workerHost'>,
): Promise<boolean> {
  const key = `${teamId} ${workerHost}`;
  const known: Answers = answersOf.get(deps) ?? new Map();
  answersOf.set(deps, known);
  const last = known.get(key);
  if (last && Date.now() - last.readAt < maxAgeMs) return last.value;
  const value = db.query(readCapacity, [teamId, workerHost]).then((rows) => rows[0]?.at_capacity ?? false);
  value.catch(() => known.delete(key));
  known.set(key, { readAt: Date.now(), value });
  return value;
}
