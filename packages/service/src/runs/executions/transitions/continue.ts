import { randomUUIDv7 } from 'node:crypto';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { resolveNotifications } from '../../inbox/write.ts';
import { tellQueue, tellReaders } from '../notices.ts';
import { countQueued } from './transition.ts';

/**
 * Changes SUCCEEDED, FAILED, ERROR, CANCELLED or BLOCKED (without a sandbox) to QUEUED, with a new execution. The new execution is assigned
 * when the old execution has ended. The column `continues` is the number of the execution whose conversation the new execution continues;
 * NULL: it continues none.
 */
const continueStatement = defineStatement({
  name: 'transition_continue',
  text: `
    WITH moved AS (
      UPDATE runs SET state = 'QUEUED', current_execution_id = $3, assignment_id = NULL, ended_at = NULL,
        status_message = NULL, error_code = NULL, retryable = NULL, open_request = NULL,
        updated_at = clock_timestamp(), event_seq = runs.event_seq + 1
      WHERE runs.id = $1 AND runs.current_execution_id = $2 AND runs.state IN ('SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED', 'BLOCKED')
      RETURNING runs.id, runs.event_seq
    ), next AS (
      INSERT INTO executions (id, run_id, team_id, number, phase, pool, depth, image, continues, is_fresh)
      SELECT $3, moved.id, previous.team_id, previous.number + 1, 'queued', previous.pool, previous.depth, previous.image,
        CASE WHEN $5 THEN previous.number END, $6
      FROM moved, executions previous WHERE previous.id = $2
      RETURNING number, pool
    ), unplayed AS (
      -- These follow-ups were taken for a first prompt that the harness never received.
      UPDATE followups SET execution_id = NULL, taken_at = NULL FROM moved, executions e
      WHERE followups.run_id = moved.id AND e.id = followups.execution_id AND e.started_at IS NULL
        AND NOT followups.is_debug
    ), event AS (
      INSERT INTO run_events (run_id, seq, event_type, state, execution_number, payload)
      SELECT moved.id, moved.event_seq, 'followup_received', 'QUEUED', next.number, $4::jsonb FROM moved, next
    )${resolveNotifications('moved')}
    SELECT ${tellReaders('moved.id')}, ${tellQueue('next.pool')} FROM moved, next`,
  row: {},
});

/**
 * Queues a further execution of a run that has ended, or is BLOCKED without a sandbox. The caller has locked the rows of the run and its
 * execution. Returns false if the run had changed before the lock.
 */
export async function continueRun(
  db: Queryable,
  input: {
    readonly runId: string;
    readonly executionId: string;
    /** Payload of the timeline event. */
    readonly payload: Record<string, unknown>;
    /** False if the harness never received the run's prompt, so the new execution begins with the prompt. */
    readonly begun: boolean;
    /** True: the new execution begins with only the stored changes of the repositories. */
    readonly isFresh?: boolean;
  },
): Promise<boolean> {
  const rows = await db.query(continueStatement, [
    input.runId,
    input.executionId,
    randomUUIDv7(),
    JSON.stringify(input.payload),
    input.begun,
    input.isFresh ?? false,
  ]);
  countQueued(db, rows.length);
  return rows.length === 1;
}
