import { randomUUIDv7 } from 'node:crypto';
import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';
import { queueChannel, runChannel } from '../channels.ts';
import type { ExecutionDeps } from '../deps.ts';
import type { Status } from './transition.ts';
import { err, errEnded } from './transitions.ts';

/**
 * CLAIMED, INPROGRESS → QUEUED with a new execution, where tries are left. It is one statement, so a run always has exactly
 * one current execution. The old execution ends or is stopped; the new one waits for its end and for the backoff.
 * The failed turn does not count as ended: if it was the first, the new execution begins where the old one did.
 * The follow-ups of the failed turn wait again: all that the execution took, or only the last one where turns had ended. A
 * follow-up that answered a question of this execution does not wait again.
 */
const retryStatement = defineStatement({
  name: 'transition_retry',
  text: `
    WITH moved AS (
      UPDATE runs SET state = 'QUEUED', current_execution_id = $3, assignment_id = NULL,
        status_message = $4, error_code = $5, retryable = true, open_request = NULL,
        updated_at = clock_timestamp(), event_seq = runs.event_seq + 1
      WHERE runs.id = $1 AND runs.current_execution_id = $2 AND runs.state IN ('CLAIMED', 'INPROGRESS')
        AND (SELECT attempt FROM executions WHERE id = $2) < $6
      RETURNING runs.id, runs.event_seq
    ), previous AS (
      UPDATE executions SET
        phase = CASE WHEN $8 THEN 'ended' ELSE 'stopping' END,
        stop_reason = CASE WHEN $8 THEN NULL ELSE 'finished' END,
        stop_deadline = CASE WHEN $8 THEN NULL ELSE clock_timestamp() + make_interval(secs => $9::float8) END,
        finished_at = clock_timestamp(), ended_at = CASE WHEN $8 THEN clock_timestamp() END, deadline_at = NULL
      FROM moved WHERE executions.id = $2
      RETURNING executions.team_id, executions.number, executions.attempt, executions.pool, greatest(executions.finished_turns - 1, 0) AS finished_turns, executions.continues, executions.wanted_at, executions.depth, executions.image, executions.started_at
    ), waiting AS (
      UPDATE followups SET execution_id = NULL, taken_at = NULL FROM previous
      WHERE followups.execution_id = $2
        AND (followups.answers IS NULL OR previous.started_at IS NULL OR followups.taken_at < previous.started_at)
        AND (previous.finished_turns = 0
          OR followups.position = (SELECT max(f.position) FROM followups f WHERE f.execution_id = $2 AND f.answers IS NULL))
    ), next AS (
      INSERT INTO executions (id, run_id, team_id, number, phase, attempt, pool, depth, image, wanted_at, continues, available_at)
      SELECT $3, moved.id, previous.team_id, previous.number + 1, 'queued', previous.attempt + 1, previous.pool, previous.depth, previous.image, previous.wanted_at,
        CASE WHEN previous.finished_turns = 0 THEN previous.continues ELSE previous.number END,
        clock_timestamp() + make_interval(secs => ($7::float8[])[previous.attempt + 1] / 1000)
      FROM moved, previous
      RETURNING number
    ), event AS (
      INSERT INTO run_events (run_id, seq, event_type, state, execution_number, payload)
      SELECT moved.id, moved.event_seq, 'execution_retried', 'QUEUED', previous.number,
        jsonb_build_object('reason', $4::text, 'error_code', $5::text, 'next_execution_id', previous.number + 1,
          'delay_ms', round(($7::float8[])[previous.attempt + 1]))
      FROM moved, previous
    )
    SELECT pg_notify('${runChannel}', moved.id::text), pg_notify('${queueChannel}', previous.pool) FROM moved, previous, next`,
  row: {},
});

interface PlatformFailure {
  readonly runId: string;
  readonly executionId: string;
  readonly status: Status;
  /** True: the sandbox has ended already. */
  readonly sandboxGone: boolean;
}

/** `retried`: a new execution is queued; `errored`: the run has ended; `moved_on`: the run had changed, and nothing was done. */
export type RetryOutcome = 'retried' | 'errored' | 'moved_on';

/** Tries the run again after its backoff (1 s, 5 s, 25 s, each ± 20 %), or ends it in ERROR when its tries are used up. */
export async function retryOrError(
  deps: ExecutionDeps,
  db: Queryable,
  failure: PlatformFailure,
): Promise<RetryOutcome> {
  const { runId, executionId, status, sandboxGone } = failure;
  const delays = deps.timing.retryDelaysMs.map((delay) => delay * (0.8 + 0.4 * deps.random()));
  const retried = await db.query(retryStatement, [
    runId,
    executionId,
    randomUUIDv7(),
    status.message,
    status.code ?? null,
    delays.length,
    delays,
    sandboxGone,
    deps.timing.leaveSeconds,
  ]);
  if (retried.length === 1) return 'retried';
  const end = sandboxGone ? errEnded : err;
  const tries = `${status.message} (after ${delays.length + 1} tries)`;
  const ended = await end(db, {
    runId,
    executionId,
    status: { ...status, message: tries, retryable: true },
    args: { stop_seconds: deps.timing.leaveSeconds },
  });
  return ended ? 'errored' : 'moved_on';
}
