/** Deletes runs that ended long ago in two steps: first their conversations, later the runs. Each call is one bounded transaction. */
import type { DeleteRunDetail } from '../../platform/domain.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../platform/store/database/statement.ts';
import { deleteLockedRuns, isDeletable } from '../../runs/runs/delete.ts';

const runsAtOnce = 100;

/** The last run of a batch. The next batch begins after this run, so it does not read the deleted rows again. */
export interface Place {
  readonly endedAt: string;
  readonly id: string;
}

/** A place before all runs. */
export const start: Place = { endedAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

/** The result of a batch. The caller deletes the blobs after the transaction. */
export interface RunBatch {
  readonly runs: number;
  readonly blobKeys: readonly string[];
  /** Start of the next batch; null: there is no further batch. */
  readonly next: Place | null;
}

/** The run and every run that continues its conversation, or a fork of it, ended more than `$1` days ago. */
const isOld = `r.closed_at < now() - make_interval(days => $1::int) AND (r.closed_at, r.id) > ($2::timestamptz, $3::uuid) AND ${isDeletable}
  AND NOT EXISTS (SELECT FROM runs later WHERE later.conversation_id = ANY(ARRAY(
      SELECT r.conversation_id UNION ALL SELECT f.conversation_id FROM forked_runs f WHERE f.run_id = r.id))
    AND (later.closed_at IS NULL OR later.closed_at >= now() - make_interval(days => $1::int)))`;

const place = { id: uuid, endedAt: text() };

const lockOld = defineStatement({
  name: 'lock_old_runs',
  text: `SELECT r.id, r.closed_at::text AS "endedAt" FROM runs r WHERE r.has_detail = $4 AND ${isOld} ORDER BY r.closed_at, r.id LIMIT ${runsAtOnce} FOR UPDATE OF r SKIP LOCKED`,
  row: place,
});

const lockOldWithDetail = defineStatement({
  name: 'lock_old_runs_with_detail',
  text: `
    SELECT r.id, r.closed_at::text AS "endedAt" FROM runs r WHERE r.has_detail AND ${isOld}
    ORDER BY r.closed_at, r.id LIMIT ${runsAtOnce} FOR UPDATE OF r SKIP LOCKED`,
  row: place,
});

const nothing: RunBatch = { runs: 0, blobKeys: [], next: null };

async function deleteDetailOf(tx: Queryable, runIds: readonly string[], steps: readonly DeleteRunDetail[]) {
  const blobKeys: string[] = [];
  for (const deleteDetail of steps) {
    const deleted = await deleteDetail(tx, runIds);
    blobKeys.push(...deleted.blobKeys);
    if (!deleted.isDone) return { blobKeys, isDone: false };
  }
  return { blobKeys, isDone: true };
}

/**
 * Deletes the conversations of some runs that ended more than `days` ago, by the steps that the domains registered. The results of the runs
 * are not deleted.
 */
export async function deleteOldDetail(
  db: Database,
  days: number,
  from: Place,
  steps: readonly DeleteRunDetail[],
): Promise<RunBatch> {
  return await db.transaction(async (tx) => {
    const runs = await tx.query(lockOldWithDetail, [days, from.endedAt, from.id]);
    const ids = runs.map(({ id }) => id);
    if (ids.length === 0) return nothing;
    const { blobKeys, isDone } = await deleteDetailOf(tx, ids, steps);
    // If more rows of these runs are left, the next batch continues with the same runs.
    if (!isDone) return { runs: 0, blobKeys, next: from };
    return { runs: ids.length, blobKeys, next: runs.at(-1) ?? null };
  });
}

/** Deletes a batch of runs that ended more than `days` ago, with all their data. `hasDetail`: the runs whose conversations are not deleted yet. */
export async function deleteOldRuns(db: Database, days: number, from: Place, hasDetail: boolean): Promise<RunBatch> {
  return await db.transaction(async (tx) => {
    const runs = await tx.query(lockOld, [days, from.endedAt, from.id, hasDetail]);
    const ids = runs.map(({ id }) => id);
    if (ids.length === 0) return nothing;
    return { runs: ids.length, blobKeys: await deleteLockedRuns(tx, ids), next: runs.at(-1) ?? null };
  });
}
