import { isTerminal } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import { createRedactor } from '../../redaction/redactor.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { followCancel } from '../cancel/cancel-descendants.ts';
import { queueChannel } from '../channels.ts';
import type { Engine } from '../engine.ts';
import { appendTimelineEvent } from '../timeline/append.ts';
import { settledPhases } from '../transitions/phases.ts';
import { retryOrError } from '../transitions/retry.ts';
import type { Phase, Status } from '../transitions/transition.ts';
import { errEnded } from '../transitions/transitions.ts';

/** How an execution's sandbox ended, as its worker told it, or as it was concluded. */
export interface SandboxEnd {
  /**
   * `exited`: the agent's process ended; `not_created`: it never came to life; `lost`: its worker is known to be gone;
   * `silent`: its lease ran out, which is checked again under the lock.
   */
  readonly kind: 'exited' | 'not_created' | 'lost' | 'silent';
  /** A sentence for a person. */
  readonly message: string;
  /** 128 + signal where a signal ended it. */
  readonly exitCode?: number;
}

const lockRun: Statement = {
  name: 'lock_run_of_execution',
  text: `
    SELECT FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1 FOR UPDATE OF r`,
};

/** A second statement, so that it sees what the one before waited for. */
const readPhase: Statement = {
  name: 'read_phase',
  text: `
    SELECT r.id AS run_id, r.state, r.current_execution_id = e.id AS is_current, e.phase,
      e.lease_until < clock_timestamp() AS lease_over
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1`,
};

/** Its run has its state already. */
const endStopping: Statement = {
  name: 'end_stopping_execution',
  text: `
    UPDATE executions SET phase = 'ended', ended_at = clock_timestamp(), idle_until = NULL, deadline_at = NULL, exit = $2::jsonb
    WHERE id = $1 AND phase IN ${settledPhases} RETURNING pg_notify('${queueChannel}', pool)`,
};

const keepExit: Statement = { name: 'keep_exit', text: 'UPDATE executions SET exit = $2::jsonb WHERE id = $1' };

interface ExecutionRow {
  run_id: string;
  state: RunState;
  is_current: boolean;
  phase: Phase;
  lease_over: boolean;
}

/**
 * What the end of a sandbox means for its run. Where the agent had reported, only the execution ends. Where it had not:
 * before INPROGRESS the run is tried again, after it the run is in ERROR `agent_process_failed`; a run that works for a
 * cancelled one is CANCELLED.
 */
export async function endSandbox(engine: Engine, executionId: string, end: SandboxEnd): Promise<void> {
  await engine.db.transaction((tx) => endSandboxWithin(engine, tx, executionId, end));
}

/** The same in the caller's transaction, which has checked that whoever says so may end it. */
export async function endSandboxWithin(
  engine: Engine,
  tx: Queryable,
  executionId: string,
  said: SandboxEnd,
): Promise<void> {
  // A worker's message may hold the last words of its agent.
  const end = { ...said, message: createRedactor(engine.secrets).whole(said.message) };
  await tx.query(lockRun, [executionId]);
  const [execution] = await tx.query<ExecutionRow>(readPhase, [executionId]);
  if (!execution) return;
  if (end.kind === 'silent' && !execution.lease_over) return;
  const exit = JSON.stringify(end);
  const isDebugged = execution.phase === 'running' && isTerminal(execution.state);
  if (execution.phase === 'stopping' || execution.phase === 'idle' || isDebugged) {
    await tx.query(endStopping, [executionId, exit]);
    await appendTimelineEvent(tx, { runId: execution.run_id, executionId, type: 'vm_shutdown', payload: { ...end } });
    return;
  }
  if (!execution.is_current || (execution.phase !== 'claimed' && execution.phase !== 'running')) return;
  if (await followCancel(engine, tx, { runId: execution.run_id, executionId })) {
    await tx.query(endStopping, [executionId, exit]);
  } else {
    await decide(engine, tx, execution, executionId, end);
    await tx.query(keepExit, [executionId, exit]);
  }
  await appendTimelineEvent(tx, { runId: execution.run_id, executionId, type: 'vm_shutdown', payload: { ...end } });
}

async function decide(
  engine: Engine,
  tx: Queryable,
  execution: ExecutionRow,
  executionId: string,
  end: SandboxEnd,
): Promise<void> {
  const code = end.kind === 'not_created' ? 'resource_unavailable' : 'agent_process_failed';
  const status: Status = { message: end.message, code, retryable: false };
  const target = { runId: execution.run_id, executionId };
  if (execution.phase === 'claimed') await retryOrError(engine, tx, { ...target, status, sandboxGone: true });
  else await errEnded(tx, { ...target, status, payload: { message: end.message, error_code: code } });
}
