import type { TimelineEventType } from '@runyard/contract/runs/timeline';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { enqueueDeliveries, enqueuedColumns } from '../../subscriptions/enqueue.ts';
import { runChannel } from '../channels.ts';
import { lastChange } from './last-change.ts';

/** Defines the statement. `updatedAt` is the new time of the run, `further` a common table expression, `, name AS (…)`, that may read `numbered`. */
const statementOf = (name: string, updatedAt: string, further = '') =>
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
    SELECT pg_notify('${runChannel}', id::text) FROM numbered`,
    row: {},
  });

const append = statementOf('append_timeline_event', lastChange);
const appendChange = statementOf('append_timeline_event_of_change', 'clock_timestamp()');

/** Subscribers to `run.blocked` also get questions in the debug window, with the state FAILED. */
const appendQuestion = statementOf(
  'append_question_of_failed_run',
  'clock_timestamp()',
  `, delivery AS (${enqueueDeliveries('run.blocked', 'FAILED', 'numbered')})`,
);

interface TimelineAddition {
  readonly runId: string;
  readonly executionId: string;
  readonly type: TimelineEventType;
  readonly payload?: Record<string, unknown>;
  /** True: a member of the run that the API shows changes with the event. */
  readonly changesRun?: true;
}

const valuesOf = ({ runId, executionId, type, payload }: TimelineAddition) => [
  runId,
  executionId,
  type,
  payload ? JSON.stringify(payload) : null,
];

/** Adds an event that changes no state to the timeline. The execution may be an older one of the run. */
export async function appendTimelineEvent(db: Queryable, event: TimelineAddition): Promise<void> {
  await db.query(event.changesRun ? appendChange : append, valuesOf(event));
}

/** Adds a question that the agent asks in the debug window, and enqueues its deliveries. */
export async function appendQuestionOfFailedRun(
  db: Queryable,
  event: Omit<TimelineAddition, 'type' | 'changesRun'>,
): Promise<void> {
  await db.query(appendQuestion, valuesOf({ ...event, type: 'oz_run_blocked' }));
}
