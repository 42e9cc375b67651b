/** Runs that ended long ago: first what was said in them goes, then they themselves. Each call is one transaction of bounded size. */
import { deleteLockedRuns, isDeletable } from '../runs/delete/delete.ts';
import type { Database, Statement } from '../store/database/database.ts';

const runsAtOnce = 100;
const eventsAtOnce = 10_000;

/** Where a batch begins: behind the last run of the one before, else it would pass over all that was just deleted. */
export interface Place {
  readonly endedAt: string;
  readonly id: string;
}

/** Before all runs. */
export const start: Place = { endedAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

/** What a batch did; its blobs are the caller's to delete, after the commit. */
export interface RunBatch {
  readonly runs: number;
  readonly blobKeys: readonly string[];
  /** Where the next batch begins; null: nothing is left. */
  readonly next: Place | null;
}

/** Ended more than `$1` days ago, and so has every run that continues its conversation. */
const isOld = `r.ended_at < now() - make_interval(days => $1::int) AND (r.ended_at, r.id) > ($2::timestamptz, $3::uuid) AND ${isDeletable}
  AND NOT EXISTS (SELECT FROM runs later WHERE later.conversation_id = r.conversation_id
    AND (later.ended_at IS NULL OR later.ended_at >= now() - make_interval(days => $1::int)))`;

const lockOld: Statement = {
  name: 'lock_old_runs',
  text: `SELECT r.id, r.ended_at::text AS "endedAt" FROM runs r WHERE ${isOld} ORDER BY r.ended_at, r.id LIMIT ${runsAtOnce} FOR UPDATE OF r SKIP LOCKED`,
};

const lockOldWithDetail: Statement = {
  name: 'lock_old_runs_with_detail',
  text: `
    SELECT r.id, r.ended_at::text AS "endedAt" FROM runs r WHERE (r.detail_deleted_at IS NULL OR r.detail_deleted_at < r.ended_at) AND ${isOld}
    ORDER BY r.ended_at, r.id LIMIT ${runsAtOnce} FOR UPDATE OF r SKIP LOCKED`,
};

/** Before the first of them goes: a stream that has not read them all is told (410) instead of going on behind them. */
const markEvents: Statement = {
  name: 'mark_deleted_conversation_events',
  text: `
    UPDATE runs r SET events_kept_after = deleted.seq
    FROM (SELECT run_id, max(seq) AS seq FROM conversation_events WHERE run_id = ANY($1::uuid[]) GROUP BY run_id) deleted
    WHERE r.id = deleted.run_id AND r.events_kept_after < deleted.seq`,
};

const deleteEvents: Statement = {
  name: 'delete_old_conversation_events',
  text: `
    DELETE FROM conversation_events c
    USING (SELECT run_id, seq FROM conversation_events WHERE run_id = ANY($1::uuid[]) LIMIT ${eventsAtOnce}) old
    WHERE c.run_id = old.run_id AND c.seq = old.seq RETURNING 1 AS one`,
};

const deleteChunks: Statement = {
  name: 'delete_old_transcript_chunks',
  text: `
    DELETE FROM transcript_chunks USING executions e
    WHERE e.id = transcript_chunks.execution_id AND e.run_id = ANY($1::uuid[])`,
};

/** Without bytes there is nothing that would be composed again. */
const forgetTranscripts: Statement = {
  name: 'forget_old_transcripts',
  text: `
    WITH old AS (
      SELECT id, transcript_blob, memory_blob, workspace_blob FROM executions
      WHERE run_id = ANY($1::uuid[]) AND (transcript_bytes > 0 OR memory_blob IS NOT NULL OR workspace_turn IS NOT NULL) FOR UPDATE
    )
    UPDATE executions SET transcript_blob = NULL, transcript_bytes = 0, memory_blob = NULL, memory_turn = NULL, memory_request = NULL,
      workspace_turn = NULL, workspace_blob = NULL, workspace_bytes = NULL, workspace_sha256 = NULL, workspace_session = NULL
    FROM old WHERE executions.id = old.id
    RETURNING ARRAY[old.transcript_blob, old.memory_blob, old.workspace_blob] AS keys`,
};

/** They are part of what was said; a rerun needs only those of the request. */
const deleteFollowupFiles: Statement = {
  name: 'delete_old_followup_files',
  text: `
    DELETE FROM attachments a USING followups f
    WHERE f.run_id = ANY($1::uuid[]) AND f.execution_id IS NOT NULL AND a.followup_id = f.id RETURNING a.blob_key AS key`,
};

/** A run that goes on has its whole room again. */
const markDeleted: Statement = {
  name: 'mark_runs_without_detail',
  text: `
    UPDATE runs SET detail_deleted_at = clock_timestamp(), event_bytes = 0, transcript_bytes = 0, dropped_events = 0, dropped_lines = 0
    WHERE id = ANY($1::uuid[])`,
};

/** Deletes conversation and transcript of some runs that ended more than `days` ago. What they made stays. */
export async function deleteOldDetail(db: Database, days: number, from: Place): Promise<RunBatch> {
  return await db.transaction(async (tx) => {
    const runs = await tx.query<Place>(lockOldWithDetail, [days, from.endedAt, from.id]);
    const ids = runs.map(({ id }) => id);
    if (ids.length === 0) return { runs: 0, blobKeys: [], next: null };
    await tx.query(markEvents, [ids]);
    const events = await tx.query(deleteEvents, [ids]);
    // The rest goes with the next batches, before the runs are marked.
    if (events.length === eventsAtOnce) return { runs: 0, blobKeys: [], next: from };
    await tx.query(deleteChunks, [ids]);
    const told = await tx.query<{ keys: (string | null)[] }>(forgetTranscripts, [ids]);
    const files = await tx.query<{ key: string }>(deleteFollowupFiles, [ids]);
    await tx.query('DELETE FROM followups WHERE run_id = ANY($1::uuid[]) AND execution_id IS NOT NULL', [ids]);
    await tx.query(markDeleted, [ids]);
    const blobKeys = told.flatMap(({ keys }) => keys.filter((key) => key !== null));
    return { runs: ids.length, blobKeys: [...blobKeys, ...files.map(({ key }) => key)], next: runs.at(-1) ?? null };
  });
}

/** Deletes some runs that ended more than `days` ago, with all that is theirs. */
export async function deleteOldRuns(db: Database, days: number, from: Place): Promise<RunBatch> {
  return await db.transaction(async (tx) => {
    const runs = await tx.query<Place>(lockOld, [days, from.endedAt, from.id]);
    const ids = runs.map(({ id }) => id);
    if (ids.length === 0) return { runs: 0, blobKeys: [], next: null };
    return { runs: ids.length, blobKeys: await deleteLockedRuns(tx, ids), next: runs.at(-1) ?? null };
  });
}
