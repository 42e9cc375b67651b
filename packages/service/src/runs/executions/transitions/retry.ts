import { randomUUIDv7 } from 'node:crypto';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../deps.ts';
import { relaunchStatement } from './relaunch.ts';
import type { Status } from './transition.ts';
import { err, errEnded } from './transitions.ts';

/** SQL: the value of a column that belongs to the repeated turn; NULL if other turns had ended before it. */
const ofSameTurn = (column: string, otherwise: string): string =>
  `CASE WHEN previous.finished_turns = 0 THEN previous.${column} ELSE ${otherwise} END`;

/**
 * CLAIMED, INPROGRESS → QUEUED with a new execution, if retries are left. The agent has reported the end of the failed turn, which does
 * not count as ended.
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
