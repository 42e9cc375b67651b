/** Child runs above `child_runs.max_live` of their parent wait in the queue until another child of the parent has ended. */
import { usualLiveChildren } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../deps.ts';
import { tellQueue, tellReaders } from '../notices.ts';

const perSweep = 100;

/** SQL: `child_runs.max_live` of the request `p`. A stored configuration may be older than this member and have a value of another type. */
export const maxLiveOf = (p: string): string => `
  CASE WHEN jsonb_typeof(${p}.config #> '{child_runs,max_live}') = 'number' THEN (${p}.config #>> '{child_runs,max_live}')::float8::int
    ELSE ${usualLiveChildren} END`;

/** SQL: the run `c` is live. */
const isLive = (c: string): string => `${c}.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')`;
/** SQL: the execution `e` waits for a place. */
const waits = 'e.is_queued AND e.waits_for_place';

/**
 * Finds parents that have a free place and a child that waits for it; first the parent whose child has waited longest. Parents without a
 * free place are left out, so they do not use up the limit of a round. Reads the waiting children first: while the tables have no statistics,
 * the planner could otherwise read all executions once for each run.
 */
export const findParentsWithPlace = defineStatement({
  name: 'find_parents_with_place_for_child',
  text: `
    WITH waiting AS MATERIALIZED (SELECT e.id, e.run_id, e.queued_at FROM executions e WHERE ${waits})
    SELECT w.parent_id FROM (
      SELECT r.parent_run_id AS parent_id, min(e.queued_at) AS since
      FROM waiting e JOIN runs r ON r.id = e.run_id AND r.current_execution_id = e.id
      WHERE r.parent_run_id IS NOT NULL GROUP BY r.parent_run_id
    ) w JOIN run_requests p ON p.run_id = w.parent_id
    WHERE (SELECT count(*) FROM runs c JOIN executions e ON e.id = c.current_execution_id
      WHERE c.parent_run_id = w.parent_id AND ${isLive('c')} AND NOT (${waits})) < ${maxLiveOf('p')}
    ORDER BY w.since, w.parent_id LIMIT ${perSweep}`,
  row: { parent_id: uuid },
});

/** A request that starts a child takes the same lock, so no other place is given away between the count and the release. */
const lockParent = defineStatement({
  name: 'lock_parent_of_waiting_children',
  text: 'SELECT id FROM runs WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED',
  row: { id: uuid },
});

const release = defineStatement({
  name: 'release_waiting_children',
  text: `
    WITH child AS MATERIALIZED (
      SELECT c.id AS run_id, e.id, c.state, ${waits} AS waits
      FROM runs c JOIN executions e ON e.id = c.current_execution_id
      WHERE c.parent_run_id = $1 AND ${isLive('c')}
    ), next AS (
      SELECT id FROM child WHERE waits ORDER BY id
      LIMIT greatest(0, (SELECT ${maxLiveOf('p')} FROM run_requests p WHERE p.run_id = $1) - (SELECT count(*) FROM child WHERE NOT waits))
    )
    UPDATE executions e SET waits_for_place = false, available_at = clock_timestamp(), queued_at = clock_timestamp(),
      wanted_at = clock_timestamp()
    FROM next WHERE e.id = next.id AND e.waits_for_place
    RETURNING ${tellQueue('e.pool')}, ${tellReaders('e.run_id')}`,
  row: {},
});

/** SQL: the run of the execution `e` has no parent. A subquery, so that the planner reads only the runs of the executions that wait. */
const isOrphan = '(SELECT r.parent_run_id IS NULL FROM runs r WHERE r.id = e.run_id)';

/** Finds out whether children of deleted runs wait. */
export const findWaitingOrphan = defineStatement({
  name: 'find_waiting_orphan',
  text: `SELECT FROM executions e WHERE e.waits_for_place AND ${isOrphan} LIMIT 1`,
  row: {},
});

/** Children of a deleted run have no limit any more. */
const releaseOrphans = defineStatement({
  name: 'release_orphans_of_waiting_children',
  text: `
    UPDATE executions e SET waits_for_place = false WHERE e.waits_for_place AND ${isOrphan}
    RETURNING ${tellQueue('e.pool')}`,
  row: {},
});

/** Lets waiting children of this run start, as long as the run has free places. The caller has locked the row of the run. */
export async function releaseChildrenOf(tx: Queryable, parentRunId: string): Promise<void> {
  await tx.query(release, [parentRunId]);
}

/** Lets waiting children start whose parents have free places. Any number of processes may do this at once. */
export async function releaseChildren({ db }: Pick<ExecutionDeps, 'db'>): Promise<void> {
  for (const { parent_id: parentId } of await db.query(findParentsWithPlace, []))
    await db.transaction(async (tx) => {
      if ((await tx.query(lockParent, [parentId])).length > 0) await releaseChildrenOf(tx, parentId);
    });
  await db.query(releaseOrphans, []);
}
