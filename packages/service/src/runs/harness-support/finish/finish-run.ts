import type { FinishTask, FinishTaskResponse } from '@runyard/contract/agent/finish-task';
import { isTerminal } from '@runyard/contract/runs/run-states';
import { errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import type { ErrorCode, ErrorDetail } from '@runyard/contract/wire/errors';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { readPassedFreshChecks } from '../../executions/fresh-checks/fresh-checks.ts';
import { beginDebugTurn, endDebugTurn, retentionSeconds } from '../../executions/idle/debug-window.ts';
import { isPlanning } from '../../executions/plan-mode.ts';
import { type FinishedTurn, recordFinishedTurn } from '../../executions/transitions/record-finished-turn.ts';
import { retryOrError } from '../../executions/transitions/relaunch.ts';
import type { Status } from '../../executions/transitions/transition.ts';
import { err, fail, failSetup, succeed } from '../../executions/transitions/transitions.ts';
import { findSnapshotOfTurn } from '../../files/handoffs/read.ts';
import { endTurnWithResult } from '../../results/results.ts';

/**
 * A report about the end of a turn. The agent sends it, or the service makes it for the agent. Only the service knows the `detail` of an
 * error.
 */
export type Report = FinishTask & { readonly detail?: ErrorDetail };

interface Input {
  readonly runId: string;
  readonly executionId: string;
  readonly report: Report;
}

/**
 * Ends a turn as the agent reported it. If the user made an error, or the agent could not do the task, the run becomes FAILED. After a
 * platform error, the run is tried again if the error is retryable and retries are left; otherwise it becomes ERROR. If a follow-up waits
 * and the agent can continue, the state of the run stays. A turn in the sandbox of a failed setup does not change the run. The report
 * changes nothing if the run was cancelled, timed out or got another execution, or if the same turn was already reported. The caller has
 * locked the run's row.
 */
export async function finishRun(
  deps: ExecutionDeps,
  tx: Queryable,
  input: Input,
): Promise<FinishTaskResponse['next'] | undefined> {
  const { report, executionId } = input;
  const turn = report.turn ?? 1;
  const before = await recordFinishedTurn(tx, { ...input, turn });
  if (!before?.is_current || before.finished_turns >= turn) return undefined;
  // Change nothing in two cases: the turn ended with an open request, whose answer begins the next turn, or a stopping agent only
  // confirms that it exits.
  if (before.state === 'BLOCKED' && (report.success || before.phase !== 'idle')) return undefined;
  if (isTerminal(before.state)) {
    // If a turn in the sandbox of a failed setup ended with an open request, or if the sandbox is stopping, change nothing.
    if (before.phase !== 'running') return undefined;
    if (!before.has_debug_followups) await endDebugTurn(deps, tx, input);
    return undefined;
  }
  const hasResult = await endTurnWithResult(
    tx,
    { runId: input.runId, executionId, turn },
    {
      finalMessage: finalMessageOf(report),
      succeeded: report.success,
    },
  );
  const code = report.error?.code;
  const canContinue = report.success || !code || isOfAgent(code);
  if (before.state === 'INPROGRESS' && before.has_followups && canContinue) return undefined;
  if (!report.success) {
    await endInFailure(deps, tx, input, before);
    return undefined;
  }
  const missing = await findMissing(tx, input, before, hasResult);
  if (missing === undefined) return await endInSuccess(deps, tx, input, before);
  await endInFailure(deps, tx, { ...input, report: { ...report, success: false, error: missing } }, before);
  return undefined;
}

/** Errors after which the agent can continue its work with a follow-up in the same sandbox. */
const isOfAgent = (code: ErrorCode): boolean => code === 'result_invalid' || code === 'checks_failed';

/** Returns the last message of the agent; null if the report has only the reason for a failure. */
const finalMessageOf = ({ summary, error }: Report): string | null =>
  summary.trim() === '' || summary === error?.message ? null : summary;

/**
 * Returns the reason why a turn that its agent calls a success is none: it left no result, or a check has not passed. A turn with the mode
 * plan and a turn that a person interrupted need neither. The agent program has already sent the agent back to its work, so this happens
 * with an agent program that does not know results and checks, or that was changed. A check in a fresh sandbox has passed only if its own
 * run has passed.
 */
async function findMissing(
  tx: Queryable,
  { executionId, report }: Input,
  before: FinishedTurn,
  hasResult: boolean,
): Promise<Report['error']> {
  const reported = report.checks?.filter((check) => check.passed).map(({ name }) => name) ?? [];
  const inFresh = before.fresh_checks.length === 0 ? [] : await readPassed(tx, executionId, report.turn ?? 1);
  const isOpen = (name: string) =>
    !reported.includes(name) || (before.fresh_checks.includes(name) && !inFresh.includes(name));
  const open = before.checks.find(isOpen);
  const lacksResult = before.needs_result && !hasResult;
  if (!lacksResult && open === undefined) return undefined;
  if (report.interrupted && before.was_interrupted) return undefined;
  if (await isPlanning(tx, executionId)) return undefined;
  return lacksResult
    ? { code: 'result_invalid', message: 'The turn ended without a result, although the run has an output_schema.' }
    : { code: 'checks_failed', message: `The agent program did not report that the check ${open} passed.` };
}

/** Returns the names of the fresh checks that have passed on the changes of the turn that are stored now. */
async function readPassed(tx: Queryable, executionId: string, turn: number): Promise<readonly string[]> {
  const snapshotId = await findSnapshotOfTurn(tx, executionId, turn);
  return snapshotId === undefined ? [] : await readPassedFreshChecks(tx, { executionId, turn, snapshotId });
}

async function endInSuccess(
  deps: ExecutionDeps,
  tx: Queryable,
  { runId, executionId, report }: Input,
  { idle_seconds }: FinishedTurn,
): Promise<FinishTaskResponse['next'] | undefined> {
  // A person who interrupts a turn usually sends a follow-up, so the sandbox stays, even if the configured idle time is 0.
  const configured = report.interrupted ? idle_seconds || null : idle_seconds;
  const args = { stop_seconds: deps.timing.leaveSeconds, idle_seconds: configured ?? deps.timing.idleSeconds };
  const payload = { summary: report.summary, ...(report.interrupted ? { interrupted: true } : {}) };
  if (!(await succeed(tx, { runId, executionId, args, payload }))) return undefined;
  return args.idle_seconds > 0 ? 'wait' : 'leave';
}

async function endInFailure(
  deps: ExecutionDeps,
  tx: Queryable,
  { runId, executionId, report }: Input,
  { state, has_debug_followups }: FinishedTurn,
): Promise<void> {
  const args = { stop_seconds: deps.timing.leaveSeconds };
  const target = { runId, executionId, args };
  const message = report.error?.message ?? report.summary;
  const code = report.error?.code;
  if (!code) {
    await fail(tx, { ...target, status: { message, retryable: false }, payload: { message } });
    return;
  }
  const { retryable, runState } = errorCatalogue[code];
  const { detail } = report;
  const status: Status = { message, code, retryable, ...(detail ? { detail } : {}) };
  const end = { ...target, status, payload: { message, error_code: code, ...detail } };
  if (runState === 'ERROR') {
    if (!retryable || report.error?.retried || state === 'BLOCKED') await err(tx, end);
    else await retryOrError(deps, tx, { runId, executionId, status, sandboxGone: false });
  } else if (code === 'environment_setup_failed' && state !== 'BLOCKED') {
    await failSetup(tx, { ...end, args: { ...args, idle_seconds: await retentionSeconds(tx, runId) } });
    // A message for the sandbox of an earlier failed setup, which ended before its agent took the message, now begins a turn here.
    if (has_debug_followups) await beginDebugTurn(tx, executionId);
  } else await fail(tx, end);
}
