/** Deletes runs, and the details of old runs, such as their conversations and files. */

import { isTerminal, terminalStates } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import type { Logger } from 'pino';
import type { BlobColumn, DeletedDetail } from '../../platform/domain.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import { skillBlobs } from '../../team/skills/of-run.ts';
import { isRunTypeCancellable } from '../executions/cancel/cancel.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { endWait } from '../executions/idle/idle.ts';
import { executionBlobs } from '../executions/retention.ts';
import { waitForRuns } from '../executions/wait-for-runs.ts';
import { fileBlobs } from '../files/retention.ts';

/** All columns that name blobs. Every blob belongs to a run. */
export const runBlobs: readonly BlobColumn[] = [...fileBlobs, ...executionBlobs, skillBlobs];

export type DeleteRunOutcome =
  | { readonly kind: 'deleted'; readonly blobKeys: readonly string[] }
  /** 404 */
  | { readonly kind: 'not_found' }
  /** 409: the run has not ended; people must cancel it before the delete, if that is possible. */
  | { readonly kind: 'not_ended'; readonly state: RunState; readonly canBeCancelled: boolean }
  /** 409: the run's sandbox is still ending, or the cancel of the run has not reached all its descendants. */
  | { readonly kind: 'sandbox_running' };

/**
 * SQL: the run `r` may be deleted. The run and all its sandboxes have ended. If the run was cancelled, the cancel has reached all
 * descendants.
 */
export const isDeletable = `r.state IN (${terminalStates.map((state) => `'${state}'`).join(', ')})
  AND r.cascade_at IS NULL
  AND NOT EXISTS (SELECT FROM executions e WHERE e.run_id = r.id AND e.phase <> 'ended')`;

/**
 * Deletes an ended run of the team with all its data. Child runs stay. Ends a sandbox that waits for a follow-up, and waits at most
 * `patienceMs` until the sandbox has ended. The audit log names `by`. The caller deletes the blobs afterwards. If a crash prevents this,
 * the sweep deletes the blobs, because they have no row.
 */
export async function deleteRun(
  deps: ExecutionDeps,
  teamId: string,
  runId: string,
  patienceMs = 5_000,
  by?: Author,
): Promise<DeleteRunOutcome> {
  if (!isUuid(runId)) return { kind: 'not_found' };
  const wait = { runIds: () => [runId], waitMs: patienceMs };
  const outcome = await waitForRuns(deps.notices, wait, async () => {
    const tried = await tryToDelete(deps, teamId, runId, by);
    return tried.kind === 'sandbox_running' ? undefined : tried;
  });
  return outcome ?? { kind: 'sandbox_running' };
}

const lockRun = defineStatement({
  name: 'lock_run_to_delete',
  text: 'SELECT state, worker_host, execution_location, source FROM runs WHERE id = $1 AND team_id = $2 FOR UPDATE',
  row: {
    state: text<RunState>(),
    worker_host: nullable(text()),
    execution_location: text(),
    source: text(),
  },
});

/**
 * This statement runs separately, after the lock. So it sees changes that other transactions committed while this transaction waited for
 * the lock.
 */
const readDeletable = defineStatement({
  name: 'is_deletable_run',
  text: `SELECT FROM runs r WHERE r.id = $1 AND ${isDeletable}`,
  row: {},
});

async function tryToDelete(
  deps: ExecutionDeps,
  teamId: string,
  runId: string,
  by: Author | undefined,
): Promise<DeleteRunOutcome> {
  return await deps.db.transaction(async (tx) => {
    const [run] = await tx.query(lockRun, [runId, teamId]);
    if (!run) return { kind: 'not_found' };
    if (!isTerminal(run.state))
      return { kind: 'not_ended', state: run.state, canBeCancelled: isRunTypeCancellable(run) };
    const deletable = await tx.query(readDeletable, [runId]);
    if (deletable.length === 1) {
      const blobKeys = await deleteLockedRuns(tx, [runId]);
      const change = {
        action: 'run.delete',
        subject: { type: 'run', uid: runId },
        before: { state: run.state },
        endsAccess: true,
      } as const;
      if (by) await recordChange(tx, by, change);
      return { kind: 'deleted', blobKeys };
    }
    await endWait(tx, runId, deps.timing.leaveSeconds);
    return { kind: 'sandbox_running' };
  });
}

const deleteRows = defineStatement({
  name: 'delete_runs',
  text: 'DELETE FROM runs WHERE id = ANY($1::uuid[])',
  row: {},
});

/** SQL: selects the keys of all blobs that belong to the runs `$1::uuid[]`. */
const blobKeysOfRuns = runBlobs.map(({ ofRuns }) => ofRuns).join('\nUNION ');

/** Deletes runs whose rows the transaction has locked and checked. Returns the keys of the blobs of these runs. */
export async function deleteLockedRuns(tx: Queryable, runIds: readonly string[]): Promise<string[]> {
  const blobs = await tx.query<{ key: string }>(
    `SELECT key FROM (${blobKeysOfRuns}) AS blobs (key) WHERE key IS NOT NULL`,
    [runIds],
  );
  await tx.query(deleteRows, [runIds]);
  return blobs.map(({ key }) => key);
}

/** Deletes the blobs of a deleted run. If a blob cannot be deleted now, the nightly sweep deletes it. */
export async function deleteBlobs(
  { blobs, log }: { readonly blobs: Pick<BlobStore, 'delete'>; readonly log: Pick<Logger, 'warn'> },
  keys: readonly string[],
): Promise<void> {
  for (const key of keys) {
    await blobs.delete(key).catch((error: unknown) => {
      log.warn({ err: error, blob_key: key }, 'a blob of a deleted run is left to the nightly sweep');
    });
  }
}

const deleteFollowups = defineStatement({
  name: 'delete_old_followups',
  text: 'DELETE FROM followups WHERE run_id = ANY($1::uuid[]) AND execution_id IS NOT NULL',
  row: {},
});

/** Sets the counters to 0, so that a continued run can store the full amount again. */
const markDeleted = defineStatement({
  name: 'mark_runs_without_detail',
  text: `
    UPDATE runs SET detail_deleted_at = clock_timestamp(), event_bytes = 0, transcript_bytes = 0, dropped_events = 0, dropped_lines = 0
    WHERE id = ANY($1::uuid[])`,
  row: {},
});

/**
 * Deletes the follow-ups of these runs that agents have taken, and records that the details of the runs are deleted. Must be called after
 * all other domains have deleted their details of these runs.
 */
export async function deleteRunDetail(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  await tx.query(deleteFollowups, [runIds]);
  await tx.query(markDeleted, [runIds]);
  return { blobKeys: [], isDone: true };
}
