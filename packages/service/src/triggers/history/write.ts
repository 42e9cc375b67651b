/** Writes the table `starts`: a row for each event of a schedule or an automation, with the outcome and the run. */
import type { FactoryTaskStage } from '@runyard/contract/factories/factory-tasks';
import type { FireOutcome } from '@runyard/contract/schedules/schedules';
import type { RowRule } from '../../platform/domain.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../platform/store/database/statement.ts';
import { idAt } from '../../platform/store/database/uuid.ts';
import type { NoteRetry } from '../../runs/runs/retries/retry-runs.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { type Lane, liveStates, ownerOf } from './load.ts';

/** The outcome of an event. For `started`, the run is written in the same transaction. */
export type StartOutcome =
  | { readonly outcome: 'started'; readonly runId: string; readonly cancelsPrevious?: boolean }
  /** `undecided`: the policy was not applied to a waiting start, because its run could not be prepared. */
  | {
      readonly outcome: Exclude<FireOutcome, 'started'>;
      readonly reason: string;
      readonly undecided?: true | undefined;
    };

/** The move of a task of a factory to another stage. Runs that it starts get these members. */
export interface TaskMove {
  readonly factory_task_uid: string;
  readonly title: string;
  readonly from: FactoryTaskStage;
  readonly to: FactoryTaskStage;
  /** RFC 3339 in UTC. */
  readonly changed_at: string;
  readonly changed_by: RunActor;
}

/** The event of a start: a time of a schedule, a delivery, or a move of a task. */
export type EventOfStart =
  | { readonly scheduleId: string; readonly dueAt: string }
  | { readonly webhookUid: string; readonly deliveryId: string }
  | { readonly move: TaskMove };

/** A start to write. */
export interface NewStart {
  /** Null: the start belongs to a schedule of the team. */
  readonly automationUid: string | null;
  readonly event: EventOfStart;
  readonly lane: string | null;
  readonly result: StartOutcome;
  /** The pull request for which the automation may start only some runs. `head`: the commit, of checks. */
  readonly pullRequest?:
    | { readonly url: string; readonly head?: string | undefined; readonly maxStarts: number }
    | undefined;
  /** URL of the pull request that the event is about, if its trigger sets no limit itself. */
  readonly about?: string | undefined;
}

/**
 * Returns the SQL that writes starts. `rows` names the SQL parameter with the value of `startsParameter`. The ids are in the order of
 * the starts. Unique indexes ensure that each time of a schedule, and each delivery, starts only one run of an automation.
 */
export const insertStarts = (rows: string): string => `
      INSERT INTO starts (schedule_id, automation_uid, due_at, webhook_uid, delivery_id, lane, outcome, run_id, reason, cancels_previous,
        undecided, task_move, pull_request_url, pull_request_head, pull_request_max_starts, about_pull_request)
      SELECT i.schedule_id, i.automation_uid, i.due_at, i.webhook_uid, i.delivery_id, i.lane, i.outcome, i.run_id, i.reason,
        coalesce(i.cancels_previous, false), coalesce(i.undecided, false), i.task_move, i.pull_request_url,
        i.pull_request_head, i.pull_request_max_starts, i.about_pull_request
      FROM jsonb_to_recordset(${rows}::jsonb) AS i(schedule_id uuid, automation_uid text, due_at timestamptz, webhook_uid text,
        delivery_id uuid, lane text, outcome text, run_id uuid, reason text, cancels_previous boolean, undecided boolean,
        task_move jsonb, pull_request_url text, pull_request_head text, pull_request_max_starts integer, about_pull_request text)`;

const toRow = ({ automationUid, event, lane, result, pullRequest, about }: NewStart) => ({
  automation_uid: automationUid,
  ...('dueAt' in event
    ? { schedule_id: event.scheduleId, due_at: event.dueAt }
    : 'move' in event
      ? { task_move: event.move }
      : { webhook_uid: event.webhookUid, delivery_id: event.deliveryId }),
  lane,
  pull_request_url: pullRequest?.url,
  pull_request_head: pullRequest?.head,
  pull_request_max_starts: pullRequest?.maxStarts,
  about_pull_request: about,
  outcome: result.outcome,
  ...(result.outcome === 'started'
    ? { run_id: result.runId, cancels_previous: result.cancelsPrevious }
    : { reason: result.reason, undecided: result.undecided }),
});

/** Returns the value of the SQL parameter that `insertStarts` reads. */
export const startsParameter = (starts: readonly NewStart[]): string => JSON.stringify(starts.map(toRow));

const recordByHand = defineStatement({
  name: 'record_start_by_hand',
  text: `
    INSERT INTO starts (schedule_id, outcome, run_id, starter_kind, starter_uid) VALUES ($1, 'started', $2, $3, $4) RETURNING id`,
  row: { id: uuid },
});

/** Records a run of a schedule that a person started by hand. */
export async function recordStartByHand(
  tx: Queryable,
  scheduleId: string,
  runId: string,
  starter: RunActor,
): Promise<void> {
  await tx.query(recordByHand, [scheduleId, runId, starter.kind, starter.uid]);
}

const insertOfMove = defineStatement({
  name: 'insert_starts_of_task_move',
  text: insertStarts('$1'),
  row: {},
});

/** Writes the starts of a move, in the transaction that moves the task. */
export async function writeStartsOfMove(tx: Queryable, starts: readonly NewStart[]): Promise<void> {
  if (starts.length > 0) await tx.query(insertOfMove, [startsParameter(starts)]);
}

const countOfTask = defineStatement({
  name: 'count_starts_of_task',
  text: `
    SELECT automation_uid, count(*)::integer AS count FROM starts
    WHERE task_move->>'factory_task_uid' = $1 AND automation_uid = ANY ($2::text[]) AND id > ${idAt('1 hour')} GROUP BY automation_uid`,
  row: { automation_uid: text(), count: integer },
});

/** Returns how many starts the moves of a task made in the last hour, by the UIDs of the automations. */
export async function countStartsOfTask(
  db: Queryable,
  taskUid: string,
  automationUids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await db.query(countOfTask, [taskUid, automationUids]);
  return new Map(rows.map(({ automation_uid: uid, count }) => [uid, count]));
}

const lockOldest = defineStatement({
  name: 'lock_oldest_waiting_start',
  text: `
    SELECT id, schedule_id, webhook_uid, delivery_id, task_move, undecided, pull_request_url, pull_request_head, pull_request_max_starts
    FROM starts s
    WHERE outcome = 'waiting' AND ${ownerOf('s')} = $1 AND lane IS NOT DISTINCT FROM $2 ORDER BY id LIMIT 1 FOR UPDATE`,
  row: {
    id: uuid,
    schedule_id: nullable(uuid),
    webhook_uid: nullable(text()),
    delivery_id: nullable(uuid),
    task_move: nullable(json<TaskMove>()),
    undecided: boolean,
    pull_request_url: nullable(text()),
    pull_request_head: nullable(text()),
    pull_request_max_starts: nullable(integer),
  },
});

export type WaitingStart = RowOf<typeof lockOldest>;

/** Locks the start that has waited longest in a lane. Returns undefined if no start waits. */
export const lockOldestWaiting = async (tx: Queryable, { owner, lane }: Lane): Promise<WaitingStart | undefined> =>
  (await tx.query(lockOldest, [owner, lane]))[0];

const settle = defineStatement({
  name: 'settle_waiting_start',
  text: `
    UPDATE starts SET outcome = $2, run_id = $3, reason = $4, cancels_previous = $5, undecided = false
    WHERE id = $1 AND outcome = 'waiting' RETURNING id`,
  row: { id: uuid },
});

/** Writes the outcome of a start that waited. The transaction has locked the start. */
export async function settleStart(tx: Queryable, id: string, result: StartOutcome): Promise<void> {
  const [runId, reason, cancels = false] =
    result.outcome === 'started' ? [result.runId, null, result.cancelsPrevious] : [null, result.reason];
  await tx.query(settle, [id, result.outcome, runId, reason, cancels]);
}

const giveUp = defineStatement({
  name: 'fail_old_undecided_start',
  text: `
    UPDATE starts SET outcome = 'failed', undecided = false,
      reason = 'the service could not create the run for a day; its log has the reason'
    WHERE id = $1 AND undecided AND id < ${idAt('1 day')} RETURNING automation_uid, delivery_id, reason`,
  row: { automation_uid: nullable(text()), delivery_id: nullable(uuid), reason: text() },
});

/**
 * Fails a start if its run could not be prepared for a day, so that later starts of its lane no longer wait. Returns undefined for a
 * younger start.
 */
export const failOldStart = async (tx: Queryable, id: string) => (await tx.query(giveUp, [id]))[0];

const skipWaiting = defineStatement({
  name: 'skip_waiting_starts_of_schedules',
  text: `
    UPDATE starts s SET outcome = 'skipped', undecided = false, reason = 'the schedule was paused while it waited'
    WHERE outcome = 'waiting' AND schedule_id = ANY ($1::uuid[])
      AND automation_uid IS NOT DISTINCT FROM (SELECT o.automation_uid FROM schedules o WHERE o.id = s.schedule_id) RETURNING id`,
  row: { id: uuid },
});

/**
 * Sets the outcome of the waiting starts of schedules to `skipped`, because the schedules were paused. Starts of automations that only name
 * the schedules continue to wait.
 */
export async function skipWaitingStarts(tx: Queryable, scheduleIds: readonly string[]): Promise<void> {
  if (scheduleIds.length > 0) await tx.query(skipWaiting, [scheduleIds]);
}

const keepRuns = defineStatement({
  name: 'keep_starts_of_deleted_schedules',
  text: `
    UPDATE starts SET schedule_id = NULL, due_at = NULL
    WHERE schedule_id = ANY ($1::uuid[]) AND automation_uid IS NOT NULL AND outcome = 'started' RETURNING id`,
  row: { id: uuid },
});

/**
 * Detaches starts of automations that created a run from schedules which will be deleted. A deleted schedule is deleted with its
 * history, but the overlap policy of the automation must still count these runs.
 */
export async function keepStartsOfDeleted(tx: Queryable, scheduleIds: readonly string[]): Promise<void> {
  if (scheduleIds.length > 0) await tx.query(keepRuns, [scheduleIds]);
}

const endCancelling = defineStatement({
  name: 'end_cancelling_of_start',
  text: 'UPDATE starts SET cancels_previous = false WHERE id = $1 AND cancels_previous RETURNING id',
  row: { id: uuid },
});

/** Stores that all runs which the run of a start replaces are cancelled. */
export async function noteCancelled(db: Queryable, startId: string): Promise<void> {
  await db.query(endCancelling, [startId]);
}

/**
 * Deletes starts that are older than 30 days, and those that count for a pull request if they are older than 400 days. Keeps starts that still wait. Also keeps a start of an automation while the run of the
 * start is live, because only the start records the lane of the run. The ids sort by time, so the primary key finds old rows.
 */
export const oldStarts: RowRule = {
  table: 'starts',
  isOver: `id < ${idAt('30 days')} AND (pull_request_url IS NULL OR id < ${idAt('400 days')})
    AND outcome <> 'waiting' AND (automation_uid IS NULL OR run_id IS NULL
      OR NOT EXISTS (SELECT FROM runs r WHERE r.id = starts.run_id AND r.state IN ${liveStates}))`,
};

const moveToRetry = defineStatement({
  name: 'move_start_to_retry',
  text: `
    UPDATE starts SET run_id = $2 WHERE run_id = $1
      AND (automation_uid IS NOT NULL OR schedule_id = $3::uuid AND automation_uid IS NULL)`,
  row: {},
});

/**
 * Gives the start of a failed run to the run that repeats it, in the transaction that creates this run. So the retry is in the history, counts
 * for the overlap policy, and a chain of retries is one failure. A rerun by a person has no start.
 */
export const moveStartToRetry: NoteRetry = async (tx, { runId, retryId, scheduleId }) => {
  await tx.query(moveToRetry, [runId, retryId, scheduleId ?? null]);
};
