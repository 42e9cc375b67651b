/** Cancels live runs that a newer run of the same lane replaces (overlap policy `cancel_previous`). */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text, uuid } from '../../platform/store/database/statement.ts';
import { type FailedRows, sweepPages } from '../../platform/store/database/sweep.ts';
import { cancelRun } from '../../runs/executions/cancel/cancel.ts';
import { liveOfAutomation, liveOfSchedule } from '../history/load.ts';
import { noteCancelled } from '../history/write.ts';
import type { StartDeps } from './decide/start.ts';

/** Number of starts that one query reads. */
const pageSize = 100;

const row = { id: uuid, automation_uid: nullable(text()), schedule_id: nullable(uuid), lane: nullable(text()) };

/** Finds starts whose runs replace older runs. */
export const findReplacing = defineStatement({
  name: 'find_starts_that_cancel_runs',
  text: `SELECT id, automation_uid, schedule_id, lane FROM starts WHERE cancels_previous ORDER BY id LIMIT ${pageSize}`,
  row,
});

const findNextReplacing = defineStatement({
  name: 'find_next_starts_that_cancel_runs',
  text: `SELECT id, automation_uid, schedule_id, lane FROM starts WHERE cancels_previous AND id > $1 ORDER BY id LIMIT ${pageSize}`,
  row,
});

/**
 * Reads the runs that a new run of a schedule replaces: the oldest live runs above the limit. Finds none if the policy has changed
 * since, so these runs continue.
 */
const readAboveLimit = defineStatement({
  name: 'read_live_runs_above_limit',
  text: `
    SELECT r.id FROM schedules s CROSS JOIN LATERAL (
      SELECT r.id ${liveOfSchedule('s.id')} ORDER BY r.created_at DESC, r.id DESC OFFSET coalesce(s.max_live_runs, 1)
    ) r WHERE s.id = $1 AND s.overlap = 'cancel_previous'`,
  row: { id: uuid },
});

/** Reads the runs that a new run of an automation replaces: the live runs that were started earlier in its lane. */
const readEarlier = defineStatement({
  name: 'read_live_runs_before_start_of_automation',
  text: `SELECT r.id ${liveOfAutomation('$1', '$2')} AND live.id < $3`,
  row: { id: uuid },
});

interface Replacing {
  readonly id: string;
  readonly automation_uid: string | null;
  readonly schedule_id: string | null;
  readonly lane: string | null;
}

/** Returns the live runs that the run of this start replaces. */
const readReplaced = (db: Queryable, { id, automation_uid: uid, schedule_id: scheduleId, lane }: Replacing) =>
  uid === null ? db.query(readAboveLimit, [scheduleId]) : db.query(readEarlier, [uid, lane, id]);

/**
 * Cancels live runs that newer runs replace. A PENDING run cannot be cancelled yet, so the next round tries it again. All processes
 * may do this at the same time, because cancelling a run twice has no further effect.
 */
export async function cancelReplaced(
  deps: StartDeps,
  failed: FailedRows = new Map(),
  signal?: AbortSignal,
): Promise<void> {
  const { log } = deps.executionDeps;
  await sweepPages({
    firstPage: () => deps.db.query(findReplacing),
    pageAfter: (id) => deps.db.query(findNextReplacing, [id]),
    pageSize,
    idOf: ({ id }) => id,
    work: async (start) => {
      let isPending = false;
      for (const { id } of await readReplaced(deps.db, start))
        isPending = (await cancelRun(deps.executionDeps, id)) === 'pending' || isPending;
      if (!isPending) await noteCancelled(deps.db, start.id);
    },
    onFailure: ({ automation_uid: uid, schedule_id: scheduleId }, error) =>
      log.error(
        { err: error, ...(uid ? { automation_id: uid } : { schedule: scheduleId }) },
        'runs are cancelled again later',
      ),
    failed,
    signal,
  });
}
