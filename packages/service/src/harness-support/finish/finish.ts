import type { FinishTask, FinishTaskResponse } from '@runyard/contract/agent-protocol';
import { errorCatalogue } from '@runyard/contract/errors';
import { isTerminal } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import { headOf } from '../../conversations/output.ts';
import { retentionSeconds } from '../../executions/debug-window/retention.ts';
import { endDebugTurn } from '../../executions/debug-window/turns.ts';
import type { Engine } from '../../executions/engine.ts';
import { withoutSecrets } from '../../executions/run-tokens/agent-text.ts';
import { lockAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { retryOrError } from '../../executions/transitions/retry.ts';
import type { Phase, Status } from '../../executions/transitions/transition.ts';
import { err, fail, failSetup, succeed } from '../../executions/transitions/transitions.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';

/** `waiting`: follow-ups wait, the run goes on; `moved_on`: the run was cancelled, timed out or given to another execution before. */
export type FinishOutcome = 'finished' | 'waiting' | 'retried' | 'moved_on';

const readTurn: Statement = {
  name: 'read_finished_turn',
  text: `
    UPDATE executions e SET finished_turns = greatest(e.finished_turns, $3)
    FROM executions before JOIN runs r ON r.id = before.run_id
    WHERE e.id = $2 AND before.id = $2 AND r.id = $1
    RETURNING before.finished_turns, before.phase, r.state, r.current_execution_id = e.id AS is_current,
      (r.config->>'idle_timeout_minutes')::float8 * 60 AS idle_seconds,
      EXISTS (SELECT FROM followups f WHERE f.run_id = r.id AND f.execution_id IS NULL) AS has_followups,
      EXISTS (SELECT FROM followups f WHERE f.run_id = r.id AND f.execution_id IS NULL AND f.is_debug) AS has_debug_followups`,
};

interface TurnRow {
  finished_turns: number;
  phase: Phase;
  state: RunState;
  is_current: boolean;
  /** Null: the configuration does not say. */
  idle_seconds: number | null;
  has_followups: boolean;
  /** To the sandbox of a failed setup. */
  has_debug_followups: boolean;
}

/**
 * The agent's own report of the end of a turn. User errors and the agent's failure at the task make FAILED; platform
 * errors make ERROR, retryable ones after their retries. Where follow-ups wait and the agent can go on, the run does.
 * A turn in the sandbox of a failed setup changes nothing about the run. The transaction has locked the run's row.
 */
export async function finishRun(
  engine: Engine,
  db: Queryable,
  input: { runId: string; executionId: string; report: FinishTask },
): Promise<FinishOutcome> {
  const { runId, executionId, report } = input;
  const turn = report.turn ?? 1;
  const [row] = await db.query<TurnRow>(readTurn, [runId, executionId, turn]);
  if (!row?.is_current || row.finished_turns >= turn) return 'moved_on';
  // A turn that ended while its question is open: the answer begins the next one. Who was told to leave reports only that.
  if (row.state === 'BLOCKED' && (report.success || row.phase !== 'idle')) return 'moved_on';
  if (isTerminal(row.state)) {
    // Also a turn that ended while its question is open.
    if (row.phase !== 'running') return 'moved_on';
    if (row.has_debug_followups) return 'waiting';
    await endDebugTurn(engine, db, { runId, executionId });
    return 'finished';
  }
  const code = report.error?.code;
  if (row.state === 'INPROGRESS' && row.has_followups && (report.success || !code)) return 'waiting';
  const target = { runId, executionId, args: { stop_seconds: engine.timing.leaveSeconds } };
  if (report.success) {
    // Who interrupts wants to say something: the sandbox stays for it, whatever the configuration says.
    const configured = report.interrupted ? row.idle_seconds || null : row.idle_seconds;
    const idle_seconds = configured ?? engine.timing.idleSeconds;
    const payload = { summary: report.summary, ...(report.interrupted ? { interrupted: true } : {}) };
    const args = { ...target.args, idle_seconds };
    const done = await succeed(db, { ...target, args, payload });
    return done ? 'finished' : 'moved_on';
  }
  const message = report.error?.message ?? report.summary;
  if (!code) {
    const failed = await fail(db, { ...target, status: { message, retryable: false }, payload: { message } });
    return failed ? 'finished' : 'moved_on';
  }
  const kind = errorCatalogue[code];
  const status: Status = { message, code, retryable: kind.retryable };
  if (kind.runState === 'ERROR') {
    if (kind.retryable && row.state !== 'BLOCKED') {
      const outcome = await retryOrError(engine, db, { runId, executionId, status, sandboxGone: false });
      return outcome === 'errored' ? 'finished' : outcome;
    }
    const errored = await err(db, { ...target, status, payload: { message, error_code: code } });
    return errored ? 'finished' : 'moved_on';
  }
  const payload = { message, error_code: code };
  if (code === 'environment_setup_failed' && row.state !== 'BLOCKED') {
    const args = { ...target.args, idle_seconds: await retentionSeconds(db, runId) };
    const failed = await failSetup(db, { ...target, status, payload, args });
    return failed ? 'finished' : 'moved_on';
  }
  const failed = await fail(db, { ...target, status, payload });
  return failed ? 'finished' : 'moved_on';
}

const readPhase: Statement = {
  name: 'read_phase_after_finish',
  text: 'SELECT phase FROM executions WHERE id = $1',
};

/** Summary and error stand in the run's row and in its timeline. */
const maxWordsBytes = 64 * 1024;

function withShortWords(report: FinishTask): FinishTask {
  const { summary, error } = report;
  const short = error && { ...error, message: headOf(error.message, maxWordsBytes) };
  return { ...report, summary: headOf(summary, maxWordsBytes), ...(short ? { error: short } : {}) };
}

/** The report of the session's agent, without its secrets; what the agent shall do now, also where the report comes again. Throws `AttemptOver`. */
export async function finishTask(
  engine: Engine,
  session: RunSession,
  report: FinishTask,
): Promise<FinishTaskResponse['next']> {
  const clean = withShortWords(withoutSecrets(engine, session, report));
  const { runId, executionId } = session;
  return await engine.db.transaction(async (tx) => {
    await lockAttempt(tx, session);
    await finishRun(engine, tx, { runId, executionId, report: clean });
    const [row] = await tx.query<{ phase: Phase }>(readPhase, [executionId]);
    return row?.phase === 'idle' || row?.phase === 'running' ? 'wait' : 'leave';
  });
}
