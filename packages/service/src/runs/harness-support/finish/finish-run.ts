import type { FinishTask } from '@runyard/contract/agent/finish-task';
import { isTerminal } from '@runyard/contract/runs/run-states';
import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import type { ErrorDetail } from '@runyard/contract/wire/errors';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { endDebugTurn, retentionSeconds } from '../../executions/idle/debug-window.ts';
import { type FinishedTurn, recordFinishedTurn } from '../../executions/transitions/record-finished-turn.ts';
import { retryOrError } from '../../executions/transitions/relaunch.ts';
import type { Status } from '../../executions/transitions/transition.ts';
import { err, fail, failSetup, succeed } from '../../executions/transitions/transitions.ts';

/**
 * `waiting`: a follow-up waits, and the agent begins its next turn with it; `moved_on`: the run was cancelled, timed out, assigned
 * to another execution, or the turn was reported before.
 */
type FinishOutcome = 'finished' | 'waiting' | 'retried' | 'moved_on';

/** A report of the agent, or of the service in its place. Only the service knows the `detail` of an error. */
export type Report = FinishTask & { readonly detail?: ErrorDetail };

interface Input {
  readonly runId: string;
  readonly executionId: string;
  readonly report: Report;
}

/**
 * Ends a turn as the agent reported it. User errors, and the agent's own failure at the task, make the run FAILED. Platform errors make
 * it ERROR: retryable ones after their retries, or at once if the agent has retried. If a follow-up waits and the agent can continue,
 * the state stays. A turn in the sandbox of a failed setup does not change the run. The caller has locked the run's row.
 */
export async function finishRun(deps: ExecutionDeps, tx: Queryable, input: Input): Promise<FinishOutcome> {
  const { report } = input;
  const turn = report.turn ?? 1;
  const before = await recordFinishedTurn(tx, { ...input, turn });
  if (!before?.is_current || before.finished_turns >= turn) return 'moved_on';
  // The turn ended with an open request: the answer begins the next turn. A stopping agent only confirms that it leaves.
  if (before.state === 'BLOCKED' && (report.success || before.phase !== 'idle')) return 'moved_on';
  if (isTerminal(before.state)) {
    // The turn in the sandbox of a failed setup ended with an open request, or the sandbox is stopping.
    if (before.phase !== 'running') return 'moved_on';
    if (before.has_debug_followups) return 'waiting';
    await endDebugTurn(deps, tx, input);
    return 'finished';
  }
  const canContinue = report.success || !report.error?.code;
  if (before.state === 'INPROGRESS' && before.has_followups && canContinue) return 'waiting';
  return report.success ? await endInSuccess(deps, tx, input, before) : await endInFailure(deps, tx, input, before);
}

const outcomeOf = (isMade: boolean): FinishOutcome => (isMade ? 'finished' : 'moved_on');

async function endInSuccess(
  deps: ExecutionDeps,
  tx: Queryable,
  { runId, executionId, report }: Input,
  { idle_seconds }: FinishedTurn,
): Promise<FinishOutcome> {
  // A person who interrupts a turn will send a follow-up, so the sandbox stays, even if the configuration says 0.
  const configured = report.interrupted ? idle_seconds || null : idle_seconds;
  const args = { stop_seconds: deps.timing.leaveSeconds, idle_seconds: configured ?? deps.timing.idleSeconds };
  const payload = { summary: report.summary, ...(report.interrupted ? { interrupted: true } : {}) };
  return outcomeOf(await succeed(tx, { runId, executionId, args, payload }));
}

async function endInFailure(
  deps: ExecutionDeps,
  tx: Queryable,
  { runId, executionId, report }: Input,
  { state }: FinishedTurn,
): Promise<FinishOutcome> {
  const args = { stop_seconds: deps.timing.leaveSeconds };
  const target = { runId, executionId, args };
  const message = report.error?.message ?? report.summary;
  const code = report.error?.code;
  if (!code) {
    return outcomeOf(await fail(tx, { ...target, status: { message, retryable: false }, payload: { message } }));
  }
  const { retryable, runState } = errorCatalogue[code];
  const { detail } = report;
  const status: Status = { message, code, retryable, ...(detail ? { detail } : {}) };
  const payload = { message, error_code: code, ...detail };
  if (runState === 'ERROR') {
    if (!retryable || report.error?.retried || state === 'BLOCKED')
      return outcomeOf(await err(tx, { ...target, status, payload }));
    const outcome = await retryOrError(deps, tx, { runId, executionId, status, sandboxGone: false });
    return outcome === 'errored' ? 'finished' : outcome;
  }
  if (code === 'environment_setup_failed' && state !== 'BLOCKED') {
    const idle_seconds = await retentionSeconds(tx, runId);
    return outcomeOf(await failSetup(tx, { ...target, status, payload, args: { ...args, idle_seconds } }));
  }
  return outcomeOf(await fail(tx, { ...target, status, payload }));
}
