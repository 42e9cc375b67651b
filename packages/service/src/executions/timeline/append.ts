import type { TimelineEventType } from '@runyard/contract/timeline';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { enqueueDeliveries, enqueuedColumns } from '../../subscriptions/enqueue.ts';
import { runChannel } from '../channels.ts';

/** `further`: `, name AS (…)`, a common table expression that may read `numbered`. */
const statementOf = (name: string, further = ''): Statement => ({
  name,
  text: `
    WITH numbered AS (
      UPDATE runs SET event_seq = event_seq + 1, updated_at = clock_timestamp() WHERE id = $1
      RETURNING ${enqueuedColumns.join(', ')}
    ), event AS (
      INSERT INTO run_events (run_id, seq, event_type, execution_number, payload)
      SELECT numbered.id, numbered.event_seq, $3, executions.number, $4::jsonb
      FROM numbered, executions WHERE executions.id = $2
    )${further}
    SELECT pg_notify('${runChannel}', id::text) FROM numbered`,
});

const append = statementOf('append_timeline_event');

/** A FAILED run asks in the sandbox that its setup left: who hears of runs that ask hears of it, with the state as it is. */
const appendQuestion = statementOf(
  'append_question_of_failed_run',
  `, delivery AS (${enqueueDeliveries('run.blocked', 'FAILED', 'numbered')})`,
);

interface TimelineAddition {
  readonly runId: string;
  readonly executionId: string;
  readonly type: TimelineEventType;
  readonly payload?: Record<string, unknown>;
}

const valuesOf = ({ runId, executionId, type, payload }: TimelineAddition) => [
  runId,
  executionId,
  type,
  payload ? JSON.stringify(payload) : null,
];

/** Adds an event to the timeline that changes no state, of an execution which may be an older one. */
export async function appendTimelineEvent(db: Queryable, event: TimelineAddition): Promise<void> {
  await db.query(append, valuesOf(event));
}

/** The same for what the agent asks in the sandbox of a failed setup, which subscribers to `run.blocked` are told. */
export async function appendQuestionOfFailedRun(db: Queryable, event: Omit<TimelineAddition, 'type'>): Promise<void> {
  await db.query(appendQuestion, valuesOf({ ...event, type: 'oz_run_blocked' }));
}
