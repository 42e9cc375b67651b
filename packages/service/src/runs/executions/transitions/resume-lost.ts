import { randomUUIDv7 } from 'node:crypto';
import { maxResumesOfTurn } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../deps.ts';
import { relaunchStatement } from './relaunch.ts';
import type { Status } from './transition.ts';

/** SQL: how often the present turn of the execution `e` was resumed. */
export const timesResumed = (e: string): string =>
  `CASE WHEN ${e}.finished_turns = 0 THEN ${e}.resume_count ELSE 0 END`;

/** SQL: turns that began with a follow-up. The first turn of the execution did not. */
const followUpTurns = `(SELECT count(*) FROM followups f
  WHERE f.run_id = $1 AND f.execution_id = $2 AND f.answers IS NULL AND f.taken_at >= previous.started_at)`;

/**
 * INPROGRESS → QUEUED with a new execution, which resumes the turn in which the machine was lost. The sandbox has ended or is ending, or its
 * lease has expired. The time after the agent's last call does not count as work. If the agent had taken no follow-up for the turn yet, the
 * new turn begins with the waiting follow-ups.
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

/** Queues an execution that resumes the lost turn. Returns false if the run has changed, or was resumed as often as it may be. */
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
  return rows.length === 1;
}
