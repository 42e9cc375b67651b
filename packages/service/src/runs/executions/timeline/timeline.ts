/** Adds events to the timeline of a run, and reads them. */

import type { TimelineEvent, TimelineEventType } from '@runyard/contract/runs/timeline';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  defineStatement,
  integer,
  json,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { enqueueDeliveries, enqueuedColumns, tellSubscribers } from '../../subscriptions/enqueue.ts';
import { tellReaders } from '../notices.ts';

/**
 * SQL: the new `updated_at` of a run that gets events. If the last change was less than a second ago, `updated_at` stays the same. Statements
 * that change another field of the run always set `updated_at` to the present time.
 */
export const lastChange =
  "CASE WHEN updated_at > clock_timestamp() - interval '1 second' THEN updated_at ELSE clock_timestamp() END";

/**
 * Defines a statement that adds an event. `updatedAt` is SQL for the new `updated_at` and further assignments. `further` is a further common
 * table expression, `, name AS (…)`, that may read `numbered`. `told`: SQL of further columns of the result, `, column`.
 */
const statementOf = (name: string, updatedAt: string, further = '', told = '') =>
  defineStatement({
    name,
    text: `
    WITH numbered AS (
      UPDATE runs SET event_seq = event_seq + 1, updated_at = ${updatedAt} WHERE id = $1
      RETURNING ${enqueuedColumns.join(', ')}
    ), event AS (
      INSERT INTO run_events (run_id, seq, event_type, execution_number, payload)
      SELECT numbered.id, numbered.event_seq, $3, executions.number, $4::jsonb
      FROM numbered, executions WHERE executions.id = $2
    )${further}
    SELECT ${tellReaders('id')}${told} FROM numbered`,
    row: {},
  });

const append = statementOf('append_timeline_event', lastChange);
const appendChange = statementOf('append_timeline_event_of_change', 'clock_timestamp()');

/**
 * No other execution of the run has a sandbox: the next one is assigned after all older ones have ended. `updated_at` stays, so that an ended
 * run keeps its place in lists by last change.
 */
const appendShutdownStatement = statementOf('append_shutdown_of_sandbox', 'updated_at, in_sandbox = false');

/** This statement also notifies subscribers to `run.blocked`. For a question in the debug window they get the state FAILED. */
const appendQuestion = statementOf(
  'append_question_of_failed_run',
  'clock_timestamp()',
  `, delivery AS (${enqueueDeliveries('run.blocked', 'FAILED', 'numbered')})`,
  `, ${tellSubscribers('delivery')}`,
);

interface TimelineAddition {
  readonly runId: string;
  readonly executionId: string;
  readonly type: TimelineEventType;
  readonly payload?: Record<string, unknown>;
  /** True if the event changes a member of the run that the API shows. */
  readonly changesRun?: true;
}

const valuesOf = ({ runId, executionId, type, payload }: TimelineAddition) => [
  runId,
  executionId,
  type,
  payload ? JSON.stringify(payload) : null,
];

/** Adds to the timeline an event that does not change the state of the run. The execution may be an older execution of the run. */
export async function appendTimelineEvent(db: Queryable, event: TimelineAddition): Promise<void> {
  await db.query(event.changesRun ? appendChange : append, valuesOf(event));
}

/** Adds the end of a sandbox to the timeline. It changes `is_sandbox_running` of the run. The caller has ended the execution. */
export async function appendShutdown(
  db: Queryable,
  event: Omit<TimelineAddition, 'type' | 'changesRun'>,
): Promise<void> {
  await db.query(appendShutdownStatement, valuesOf({ ...event, type: 'vm_shutdown' }));
}

/** Adds a question that the agent asks in the debug window, and enqueues its deliveries. */
export async function appendQuestionOfFailedRun(
  db: Queryable,
  event: Omit<TimelineAddition, 'type' | 'changesRun'>,
): Promise<void> {
  await db.query(appendQuestion, valuesOf({ ...event, type: 'oz_run_blocked' }));
}

const readEvents = defineStatement({
  name: 'read_timeline',
  text: `
    SELECT event_uuid, run_id, event_type, occurred_at, execution_number, payload FROM run_events
    WHERE run_id = $1 AND event_type IS NOT NULL ORDER BY seq`,
  row: {
    event_uuid: uuid,
    run_id: uuid,
    event_type: text<TimelineEventType>(),
    occurred_at: timestamp,
    execution_number: nullable(integer),
    payload: nullable(json<Record<string, unknown>>()),
  },
});

/** Returns the setup and lifecycle events of a run in the order in which they were stored. */
export async function readTimeline(db: Queryable, runId: string): Promise<TimelineEvent[]> {
  const rows = await db.query(readEvents, [runId]);
  return rows.map((row) => ({
    event_uuid: row.event_uuid,
    run_id: row.run_id,
    event_type: row.event_type,
    occurred_at: row.occurred_at,
    ...(row.execution_number === null ? {} : { execution_id: row.execution_number }),
    ...(row.payload === null ? {} : { payload: row.payload }),
  }));
}

/**
 * In a database that was copied from another one, removes transaction numbers from events if this database has not assigned these numbers
 * yet. `edges/live/epoch.ts` calls this function in the transaction that renews the epoch.
 */
export const forgetFutureTransactions = defineStatement({
  name: 'forget_future_transactions_of_events',
  text: `UPDATE run_events SET xact = '0' WHERE xact > '0' AND xact >= pg_current_xact_id()`,
  row: {},
});
