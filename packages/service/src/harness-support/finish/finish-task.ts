import type { FinishTaskResponse } from '@runyard/contract/finish-task';
import { headOf } from '../../conversations/output.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { lockAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import type { Phase } from '../../executions/transitions/transition.ts';
import { withoutSecrets } from '../../redaction/agent-text.ts';
import { defineStatement, text } from '../../store/database/statement.ts';
import { finishRun, type Report } from './finish-run.ts';

const readPhase = defineStatement({
  name: 'read_phase_after_finish',
  text: 'SELECT phase FROM executions WHERE id = $1',
  row: { phase: text<Phase>() },
});

/** Bounds the summary and the error message, which are stored in the run's row and in its timeline. */
const maxTextBytes = 64 * 1024;

function withShortTexts(report: Report): Report {
  const { summary, error } = report;
  const short = error && { ...error, message: headOf(error.message, maxTextBytes) };
  return { ...report, summary: headOf(summary, maxTextBytes), ...(short ? { error: short } : {}) };
}

/**
 * Stores the agent's report of the end of a turn, without its secrets, and returns the agent's next step. A repeated report gets the
 * same answer. Throws `AttemptOver`.
 */
export async function finishTask(
  deps: ExecutionDeps,
  session: RunSession,
  report: Report,
): Promise<FinishTaskResponse['next']> {
  const clean = withShortTexts(withoutSecrets(deps, session, report));
  const { runId, executionId } = session;
  return await deps.db.transaction(async (tx) => {
    await lockAttempt(tx, session);
    await finishRun(deps, tx, { runId, executionId, report: clean });
    const [row] = await tx.query(readPhase, [executionId]);
    return row?.phase === 'idle' || row?.phase === 'running' ? 'wait' : 'leave';
  });
}
