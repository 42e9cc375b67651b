/**
 * Finishes the work that overlap policies leave: starts fires that wait for the end of a run, and cancels runs that a newer run
 * replaces.
 */

import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, type RowOf, uuid, uuids } from '../../platform/store/database/statement.ts';
import { type FailedRows, sweepPages } from '../../platform/store/database/sweep.ts';
import { cancelRun } from '../../runs/executions/cancel/cancel.ts';
import { writeRuns } from '../../runs/runs/submit/write-runs.ts';
import { type ScheduleDeps, spawner } from './fire.ts';
import { liveRunsOf, readLiveRunsAbove, readLoads } from './live-runs.ts';
import { maxSpawnFailures, pausedBecause, skipWaitingFires } from './record.ts';
import { liveLimitOf, scheduleColumns, scheduleRow } from './schedule-row.ts';

/** Schedules that one query reads. */
const pageSize = 100;

/** SQL of a page of schedules with a waiting fire that may start. A later change of the policy does not make it wait longer. */
const startable = (behind: string): string => `
    SELECT s.id FROM (SELECT DISTINCT schedule_id FROM schedule_fires WHERE outcome = 'waiting') f
    JOIN schedules s ON s.id = f.schedule_id
    WHERE ${behind} s.automation_uid IS NULL AND s.enabled
      AND ((s.overlap = 'allow' AND s.max_live_runs IS NULL) OR ${liveRunsOf('s.id')} < coalesce(s.max_live_runs, 1))
    ORDER BY s.id LIMIT ${pageSize}`;

/** Finds schedules with a waiting fire that may start. */
export const findStartable = defineStatement({
  name: 'find_schedules_with_startable_fire',
  text: startable(''),
  row: { id: uuid },
});

const findNextStartable = defineStatement({
  name: 'find_next_schedules_with_startable_fire',
  text: startable('s.id > $1 AND'),
  row: { id: uuid },
});

const lockSchedule = defineStatement({
  name: 'lock_schedule_with_waiting_fire',
  text: `SELECT ${scheduleColumns} FROM schedules s WHERE s.id = $1 AND s.enabled FOR UPDATE SKIP LOCKED`,
  row: scheduleRow,
});

const readOldest = defineStatement({
  name: 'read_oldest_waiting_fire',
  text: `SELECT id FROM schedule_fires WHERE schedule_id = $1 AND outcome = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE`,
  row: { id: uuid },
});

const settleWaiting = defineStatement({
  name: 'settle_waiting_fire',
  text: `
    WITH fire AS (
      UPDATE schedule_fires SET outcome = $2, run_id = $3, reason = $4 WHERE id = $1 AND outcome = 'waiting' RETURNING schedule_id
    ), counted AS (
      SELECT s.id, CASE $2 WHEN 'started' THEN 0 WHEN 'failed' THEN s.spawn_failures + 1 ELSE s.spawn_failures END AS failures
      FROM schedules s JOIN fire ON s.id = fire.schedule_id
    )
    UPDATE schedules s SET
      last_ran_at = CASE WHEN $2 = 'started' THEN clock_timestamp() ELSE s.last_ran_at END,
      last_spawn_error = CASE WHEN $2 = 'skipped' THEN s.last_spawn_error
        WHEN failures >= ${maxSpawnFailures} THEN '${pausedBecause} ' || $4 ELSE $4 END,
      spawn_failures = failures,
      enabled = s.enabled AND failures < ${maxSpawnFailures},
      next_run_at = CASE WHEN failures < ${maxSpawnFailures} THEN s.next_run_at END
    FROM counted WHERE s.id = counted.id RETURNING s.id, s.enabled`,
  row: { id: uuid, enabled: boolean },
});

/** Outcome of a fire that waited. */
export type SettledFire =
  | { readonly outcome: 'started'; readonly runId: string }
  | { readonly outcome: 'failed' | 'skipped'; readonly reason: string };

/**
 * Writes the outcome of a fire that waited, unless it has one. Returns the id of its schedule if the schedule is paused now; else null.
 */
export async function settleFire(tx: Queryable, fireId: string, fire: SettledFire): Promise<string | null> {
  const [runId, reason] = fire.outcome === 'started' ? [fire.runId, null] : [null, fire.reason];
  const [settled] = await tx.query(settleWaiting, [fireId, fire.outcome, runId, reason]);
  return settled?.enabled === false ? settled.id : null;
}

/**
 * Starts the oldest waiting fire of each schedule that has room for a run. Returns how many schedules had room. `failed`: the schedules
 * that failed in earlier rounds.
 */
export async function startWaitingFires(
  deps: ScheduleDeps,
  failed: FailedRows = new Map(),
  signal?: AbortSignal,
): Promise<number> {
  return await sweepPages({
    firstPage: () => deps.db.query(findStartable),
    pageAfter: (id) => deps.db.query(findNextStartable, [id]),
    pageSize,
    idOf: ({ id }) => id,
    work: ({ id }) => startOldest(deps, id),
    onFailure: ({ id }, error) => logFailure(deps, id, error),
    failed,
    signal,
  });
}

/** Logs a failure of one schedule. A later round tries it again. */
function logFailure({ log }: ScheduleDeps, scheduleId: string, error: unknown): void {
  log.error({ err: error, schedule: scheduleId }, 'the overlap policy of a schedule is applied again later');
}

async function startOldest(deps: ScheduleDeps, scheduleId: string): Promise<void> {
  await deps.db.transaction(async (tx) => {
    const [schedule] = await tx.query(lockSchedule, [scheduleId]);
    if (!schedule) return;
    // Counted again under the lock, because another process may have started a run.
    const { live } = (await readLoads(tx, [scheduleId]))(scheduleId);
    if (live >= (liveLimitOf(schedule) ?? Number.POSITIVE_INFINITY)) return;
    const [fire] = await tx.query(readOldest, [scheduleId]);
    if (!fire) return;
    const spawned = await (await spawner(deps, tx, [schedule]))(schedule);
    if (spawned.kind === 'prepared') await writeRuns(tx, [spawned]);
    const settled: SettledFire =
      spawned.kind === 'prepared'
        ? { outcome: 'started', runId: spawned.run.id }
        : { outcome: 'failed', reason: spawned.reason };
    const paused = await settleFire(tx, fire.id, settled);
    if (paused !== null) await skipWaitingFires(tx, [scheduleId]);
  });
}

/** SQL of a page of schedules with fires whose runs replace older ones. */
const cancelling = (behind: string): string => `
    SELECT f.schedule_id, array_agg(f.id) AS fires, max(coalesce(s.max_live_runs, 1)) AS keep, bool_or(s.overlap = 'cancel_previous') AS cancels
    FROM schedule_fires f JOIN schedules s ON s.id = f.schedule_id
    WHERE ${behind} f.cancels_previous GROUP BY f.schedule_id ORDER BY f.schedule_id LIMIT ${pageSize}`;

const cancellingRow = { schedule_id: uuid, fires: uuids, keep: integer, cancels: boolean };

/** Finds schedules with fires whose runs replace older ones. */
export const findCancelling = defineStatement({
  name: 'find_fires_that_cancel_runs',
  text: cancelling(''),
  row: cancellingRow,
});

const findNextCancelling = defineStatement({
  name: 'find_next_fires_that_cancel_runs',
  text: cancelling('f.schedule_id > $1 AND'),
  row: cancellingRow,
});

const endCancelling = defineStatement({
  name: 'end_cancelling_of_fires',
  text: 'UPDATE schedule_fires SET cancels_previous = false WHERE id = ANY ($1::uuid[]) AND cancels_previous RETURNING id',
  row: { id: uuid },
});

/**
 * Cancels the oldest live runs of schedules that a newer run replaces. The next round tries a PENDING run again. Each process does
 * this; cancelling twice changes nothing.
 */
export async function cancelPreviousRuns(
  deps: ScheduleDeps,
  failed: FailedRows = new Map(),
  signal?: AbortSignal,
): Promise<void> {
  const cancel = async ({ schedule_id: scheduleId, fires, keep, cancels }: RowOf<typeof findCancelling>) => {
    // If the policy has changed, live runs continue.
    const excess = cancels ? await readLiveRunsAbove(deps.db, scheduleId, keep) : [];
    let isPending = false;
    for (const runId of excess) isPending = (await cancelRun(deps.executionDeps, runId)) === 'pending' || isPending;
    if (!isPending) await deps.db.query(endCancelling, [fires]);
  };
  await sweepPages({
    firstPage: () => deps.db.query(findCancelling),
    pageAfter: (id) => deps.db.query(findNextCancelling, [id]),
    pageSize,
    idOf: (row) => row.schedule_id,
    work: cancel,
    onFailure: (row, error) => logFailure(deps, row.schedule_id, error),
    failed,
    signal,
  });
}
