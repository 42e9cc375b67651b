import { randomUUIDv7 } from 'node:crypto';
import { maxResumesOfTurn } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, type Statement } from '../../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../deps.ts';
import { tellAgent, tellQueue, tellReaders } from '../notices.ts';
import { countQueued, type Status } from './transition.ts';
import { err, errEnded } from './transitions.ts';

/** Defines a kind of launch that repeats the last turn of an execution. In the SQL, `previous` is the row of that execution. */
interface Relaunch {
  /** Part of the name of the prepared statement. */
  readonly name: string;
  /** States of the run in which it may be launched again, as an SQL list for `IN`. */
  readonly from: string;
  /** SQL condition on the run's current execution `e`. It may use the parameter `$6`, which is the maximum number of retries or resumes. */
  readonly guard: string;
  /** SQL: number of turns of the execution `executions` that have ended. The turn that is repeated does not count. */
  readonly finishedTurns: string;
  /** SQL: time at which the execution `executions` stopped working. */
  readonly finishedAt: string;
  /** SQL condition: the turn that is repeated began with the last follow-up that the execution took. */
  readonly hasFollowup: string;
  /** SQL for the values of these columns of the new execution. */
  readonly next: {
    readonly attempt: string;
    readonly resumes: string;
    readonly resumeCount: string;
    readonly lossMessage: string;
  };
  /** SQL: index, from 1, of the pause before the launch in the list `$7`. The list has milliseconds. */
  readonly pause: string;
  readonly event: string;
}

/**
 * Builds the statement that launches a run again: the run becomes QUEUED with a new execution. It is one statement, so a run always has
 * exactly one current execution. The old execution ends or is stopped. The new execution waits until the old execution has ended and the
 * pause is over. If the repeated turn was the first turn of the old execution, the new execution begins at the same point as the old
 * execution, and takes all follow-ups of the old execution again. Otherwise the new execution takes only the last follow-up again. A
 * follow-up that answered a question of the old execution is not taken again.
 *
 * Parameters: the ids of the run, of its execution and of the next execution; message; error code; number for `guard`; list of pauses;
 * whether the sandbox has ended; number of seconds until the sandbox must end.
 */
const relaunchStatement = (kind: Relaunch): Statement =>
  defineStatement({
    name: `transition_${kind.name}`,
    text: `
    WITH moved AS (
      UPDATE runs SET state = 'QUEUED', current_execution_id = $3, assignment_id = NULL, in_sandbox = in_sandbox AND NOT $8,
        status_message = $4, error_code = $5, retryable = true, open_request = NULL,
        updated_at = clock_timestamp(), event_seq = runs.event_seq + 1
      WHERE runs.id = $1 AND runs.current_execution_id = $2 AND runs.state IN ${kind.from}
        AND (SELECT ${kind.guard} FROM executions e WHERE e.id = $2)
      RETURNING runs.id, runs.event_seq
    ), previous AS (
      UPDATE executions SET
        phase = CASE WHEN $8 THEN 'ended' ELSE 'stopping' END,
        stop_reason = CASE WHEN $8 THEN NULL ELSE 'finished' END,
        stop_deadline = CASE WHEN $8 THEN NULL ELSE clock_timestamp() + make_interval(secs => $9::float8) END,
        finished_at = ${kind.finishedAt}, ended_at = CASE WHEN $8 THEN clock_timestamp() END, deadline_at = NULL
      FROM moved WHERE executions.id = $2
      RETURNING executions.team_id, executions.number, executions.attempt, executions.pool, ${kind.finishedTurns} AS finished_turns,
        executions.continues, executions.wanted_at, executions.depth, executions.image, executions.started_at, executions.resumes,
        executions.resume_count, executions.loss_message
    ), waiting AS (
      UPDATE followups SET execution_id = NULL, taken_at = NULL FROM previous
      WHERE followups.run_id = $1 AND followups.execution_id = $2
        AND (followups.answers IS NULL OR previous.started_at IS NULL OR followups.taken_at < previous.started_at)
        AND (previous.finished_turns = 0
          OR ${kind.hasFollowup}
            AND followups.position = (SELECT max(f.position) FROM followups f WHERE f.run_id = $1 AND f.execution_id = $2 AND f.answers IS NULL))
    ), next AS (
      INSERT INTO executions (id, run_id, team_id, number, phase, attempt, pool, depth, image, wanted_at, continues, available_at,
        resumes, resume_count, loss_message)
      SELECT $3, moved.id, previous.team_id, previous.number + 1, 'queued', ${kind.next.attempt}, previous.pool, previous.depth, previous.image, previous.wanted_at,
        CASE WHEN previous.finished_turns = 0 THEN previous.continues ELSE previous.number END,
        clock_timestamp() + make_interval(secs => ($7::float8[])[${kind.pause}] / 1000),
        ${kind.next.resumes}, ${kind.next.resumeCount}, ${kind.next.lossMessage}
      FROM moved, previous
      RETURNING number
    ), event AS (
      INSERT INTO run_events (run_id, seq, event_type, state, execution_number, payload)
      SELECT moved.id, moved.event_seq, '${kind.event}', 'QUEUED', previous.number,
        jsonb_build_object('reason', $4::text, 'error_code', $5::text, 'next_execution_id', previous.number + 1,
          'delay_ms', round(($7::float8[])[${kind.pause}]))
      FROM moved, previous
    )
    SELECT ${tellReaders('moved.id')}, ${tellAgent('moved.id')}, ${tellQueue('previous.pool')} FROM moved, previous, next`,
    row: {},
  });

/**
 * SQL: the value of the column in the row of the old execution, if the repeated turn was the first turn of this execution.
 * Otherwise `otherwise`, because the value in the row belongs to an earlier turn.
 */
const ofSameTurn = (column: string, otherwise: string): string =>
  `CASE WHEN previous.finished_turns = 0 THEN previous.${column} ELSE ${otherwise} END`;

/**
 * Changes CLAIMED or INPROGRESS to QUEUED with a new execution, if retries are left. The agent has reported the end of the failed turn, but
 * this turn does not count as ended.
 */
const retryStatement = relaunchStatement({
  name: 'retry',
  from: "('CLAIMED', 'INPROGRESS')",
  guard: 'e.attempt < $6',
  finishedTurns: 'greatest(executions.finished_turns - 1, 0)',
  finishedAt: 'clock_timestamp()',
  hasFollowup: 'true',
  next: {
    attempt: 'previous.attempt + 1',
    resumes: ofSameTurn('resumes', 'NULL'),
    resumeCount: ofSameTurn('resume_count', '0'),
    lossMessage: ofSameTurn('loss_message', 'NULL'),
  },
  pause: 'previous.attempt + 1',
  event: 'execution_retried',
});

interface PlatformFailure {
  readonly runId: string;
  readonly executionId: string;
  readonly status: Status;
  /** True if the sandbox has already ended. */
  readonly sandboxGone: boolean;
}

/**
 * `retried`: a new execution was queued; `errored`: the run has ended in ERROR; `moved_on`: the run has changed meanwhile, so nothing was
 * done.
 */
type RetryOutcome = 'retried' | 'errored' | 'moved_on';

/** Queues a further attempt of the run after a pause (1 s, 5 s, 25 s, each ± 20 %), or ends the run in ERROR after its last attempt. */
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
  countQueued(db, retried.length);
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

/** SQL: number of times that the present turn of the execution `e` was resumed. */
export const timesResumed = (e: string): string =>
  `CASE WHEN ${e}.finished_turns = 0 THEN ${e}.resume_count ELSE 0 END`;

/**
 * SQL: number of turns of the old execution that began with a follow-up. The first turn of an execution does not begin with a follow-up.
 */
const followUpTurns = `(SELECT count(*) FROM followups f
  WHERE f.run_id = $1 AND f.execution_id = $2 AND f.answers IS NULL AND f.taken_at >= previous.started_at)`;

/**
 * Changes INPROGRESS to QUEUED with a new execution, which resumes the turn that was in progress when the machine was lost. The old sandbox
 * has ended or is ending, or the lease has expired. The time after the agent's last call does not count as work. If the old agent had not
 * taken the follow-up with which the lost turn should begin, the new turn begins with the waiting follow-ups.
 */
const resumeStatement = relaunchStatement({
  name: 'resume_lost',
  from: "('INPROGRESS')",
  guard: `${timesResumed('e')} < $6`,
  finishedTurns: 'executions.finished_turns',
  finishedAt: 'greatest(executions.started_at, coalesce(executions.agent_seen_at, clock_timestamp()))',
  hasFollowup: `${followUpTurns} >= previous.finished_turns`,
  next: {
    attempt: '0',
    resumes: 'previous.number',
    resumeCount: `${timesResumed('previous')} + 1`,
    lossMessage: '$4',
  },
  pause: `least(${timesResumed('previous')} + 1, cardinality($7::float8[]))`,
  event: 'execution_resumed',
});

/**
 * Queues an execution that resumes the lost turn. Returns false if the run has changed, or if the turn was already resumed the maximum
 * number of times.
 */
export async function resumeLost(
  deps: Pick<ExecutionDeps, 'timing' | 'random'>,
  tx: Queryable,
  {
    runId,
    executionId,
    status,
    sandboxGone,
  }: {
    readonly runId: string;
    readonly executionId: string;
    readonly status: Status;
    readonly sandboxGone: boolean;
  },
): Promise<boolean> {
  const { retryDelaysMs, leaveSeconds } = deps.timing;
  const rows = await tx.query(resumeStatement, [
    runId,
    executionId,
    randomUUIDv7(),
    status.message,
    status.code ?? null,
    maxResumesOfTurn,
    retryDelaysMs.map((delay) => delay * (0.8 + 0.4 * deps.random())),
    sandboxGone,
    leaveSeconds,
  ]);
  countQueued(tx, rows.length);
  return rows.length === 1;
}
