import type { FinishTask } from '@runyard/contract/agent-protocol';
import { errorCatalogue } from '@runyard/contract/errors';
import { storable } from '../conversations/storable.ts';
import type { Queryable } from '../store/database.ts';
import type { Engine } from './engine.ts';
import { createRedactor } from './redaction.ts';
import { retryOrError } from './retry.ts';
import type { RunSession } from './sessions.ts';
import type { Status } from './transition.ts';
import { err, fail, succeed } from './transitions.ts';

/** `moved_on`: the run was cancelled, timed out or given to another execution before. */
export type FinishOutcome = 'finished' | 'retried' | 'moved_on';

/**
 * The agent's own report of its end. User errors and the agent's failure at the task make FAILED; platform errors make
 * ERROR, retryable ones after their retries.
 */
export async function finishRun(
  engine: Engine,
  db: Queryable,
  input: { runId: string; executionId: string; report: FinishTask },
): Promise<FinishOutcome> {
  const { runId, executionId, report } = input;
  const target = { runId, executionId, args: { stop_seconds: engine.timing.leaveSeconds } };
  if (report.success) {
    const done = await succeed(db, { ...target, payload: { summary: report.summary } });
    return done ? 'finished' : 'moved_on';
  }
  const message = report.error?.message ?? report.summary;
  const code = report.error?.code;
  if (!code) {
    const failed = await fail(db, { ...target, status: { message, retryable: false }, payload: { message } });
    return failed ? 'finished' : 'moved_on';
  }
  const kind = errorCatalogue[code];
  const status: Status = { message, code, retryable: kind.retryable };
  if (kind.runState === 'ERROR') {
    if (kind.retryable) {
      const outcome = await retryOrError(engine, db, { runId, executionId, status, sandboxGone: false });
      return outcome === 'errored' ? 'finished' : outcome;
    }
    const errored = await err(db, { ...target, status, payload: { message, error_code: code } });
    return errored ? 'finished' : 'moved_on';
  }
  const failed = await fail(db, { ...target, status, payload: { message, error_code: code } });
  return failed ? 'finished' : 'moved_on';
}

/** The report of the session's agent, without its secrets. */
export async function finishTask(engine: Engine, session: RunSession, report: FinishTask): Promise<FinishOutcome> {
  const redactor = createRedactor([session.token, ...engine.secrets]);
  const clean = storable(redactor.value(report)) as FinishTask;
  const { runId, executionId } = session;
  return await engine.db.transaction((tx) => finishRun(engine, tx, { runId, executionId, report: clean }));
}
