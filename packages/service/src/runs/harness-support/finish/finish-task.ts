import type { ReportShutdown } from '@runyard/contract/agent/agent-protocol';
import type { FinishTask, FinishTaskResponse } from '@runyard/contract/agent/finish-task';
import type { z } from 'zod';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, text } from '../../../platform/store/database/statement.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { headOf } from '../../conversations/output.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import type { Phase } from '../../executions/phases.ts';
import { endSandboxWithin } from '../../executions/reconcile/sandbox-end.ts';
import { AttemptOver, lockAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunIdentity, RunSession } from '../../executions/run-tokens/sessions.ts';
import { keepEmptyWorkspaceWithin } from '../../files/workspaces/keep.ts';
import { applyAgentEventsWithin } from '../events/apply-agent-events.ts';
import { finishRun, type Report } from './finish-run.ts';

const readPhase = defineStatement({
  name: 'read_phase_after_finish',
  text: 'SELECT phase FROM executions WHERE id = $1',
  row: { phase: text<Phase>() },
});

/** Limits the summary and the error message, because they are stored in the run's row and in the timeline. */
const maxTextBytes = 64 * 1024;

function withShortTexts(report: Report): Report {
  const { summary, error } = report;
  const short = error && { ...error, message: headOf(error.message, maxTextBytes) };
  return { ...report, summary: headOf(summary, maxTextBytes), ...(short ? { error: short } : {}) };
}

/**
 * Stores the agent's report of the end of a turn, with secrets redacted. Returns whether the agent waits or exits next. A repeated report
 * gets the same answer. Throws `AttemptOver`.
 */
export async function finishTask(
  deps: ExecutionDeps,
  session: RunSession,
  report: Report,
): Promise<FinishTaskResponse['next']> {
  return await deps.db.transaction(async (tx) => {
    await lockAttempt(tx, session);
    return await finishTaskWithin(deps, tx, session, report);
  });
}

/** Like `finishTask`, in the caller's transaction, which has locked the attempt. */
async function finishTaskWithin(
  deps: ExecutionDeps,
  tx: Queryable,
  session: Pick<RunSession, 'runId' | 'executionId' | 'token' | 'grantedSecrets'>,
  report: Report,
): Promise<FinishTaskResponse['next']> {
  const clean = withShortTexts(withoutSecrets(deps, session, report));
  const { runId, executionId } = session;
  const next = await finishRun(deps, tx, { runId, executionId, report: clean });
  if (next !== undefined) return next;
  const [row] = await tx.query(readPhase, [executionId]);
  return row?.phase === 'idle' || row?.phase === 'running' ? 'wait' : 'leave';
}

/**
 * Ends a turn. The same transaction stores the last events of the turn and, if `workspace` is `empty`, records that the workspace is empty.
 * Throws `AttemptOver`.
 */
export async function finishTaskWithEvents(
  deps: ExecutionDeps & { readonly blobs: BlobStore },
  session: RunIdentity,
  { events = [], workspace, ...report }: FinishTask,
): Promise<FinishTaskResponse> {
  const { unused, ...outcome } = await deps.db.transaction(async (tx) => {
    const stored = await applyAgentEventsWithin(deps, tx, session, events);
    if (stored === 'superseded') throw new AttemptOver('superseded');
    const { acknowledged, grantedSecrets } = stored;
    const next = await finishTaskWithin(deps, tx, { ...session, grantedSecrets }, report);
    // Files count as those of the turn if they were stored after its end.
    const unused = workspace === 'empty' ? await keepEmptyWorkspaceWithin(tx, session, { turn: report.turn ?? 1 }) : [];
    return { next, unused, ...(events.length === 0 ? {} : { acknowledged }) };
  });
  for (const key of unused) await deps.blobs.delete(key);
  return outcome;
}

const readWorker = defineStatement({
  name: 'read_whether_worker_is_public',
  text: 'SELECT worker_instance IS NULL AS "isPublic" FROM executions WHERE id = $1',
  row: { isPublic: boolean },
});

/** Limits the reason, because it is stored in the run's row and in the timeline. */
const maxReasonBytes = 2000;

/**
 * Logs the exit of an agent. A public worker does not report the end of each sandbox. So for a public worker, this report also ends the
 * execution if the agent's process has exited, or if the agent was ordered to exit. Every program with the run token can send this report,
 * so it does not prove that the sandbox has ended. Therefore the worker is also ordered to end the sandbox. Throws `AttemptOver`.
 */
export async function reportExit(
  deps: ExecutionDeps,
  session: RunSession,
  { reason: given, exited = false }: z.infer<typeof ReportShutdown>,
  requestId: string,
): Promise<void> {
  const { runId, executionId } = session;
  const reason = headOf(withoutSecrets(deps, session, given), maxReasonBytes);
  deps.log.info({ request_id: requestId, run_id: runId, execution_id: executionId, reason, exited }, 'agent leaves');
  await deps.db.transaction(async (tx) => {
    const phase = await lockAttempt(tx, session);
    const [worker] = await tx.query(readWorker, [executionId]);
    if (!worker?.isPublic || !(exited || phase === 'stopping')) return;
    await endSandboxWithin(deps, tx, executionId, {
      kind: 'exited',
      message: exited ? `The program that started the agent reported its exit: ${reason}` : `The agent left: ${reason}`,
      remains: 'unproven',
    });
  });
}
