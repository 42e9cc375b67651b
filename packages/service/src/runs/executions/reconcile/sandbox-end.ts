import { maxResumesOfTurn } from '@runyard/contract/limits';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import type { KubernetesFailure } from '@runyard/contract/workers/kubernetes-failure';
import type { FailureCause } from '@runyard/contract/workers/worker-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { type SealedSecrets, sealedSecretsOf, toSealedValues } from '../../../team/stored-secrets/run-secrets.ts';
import { followCancel } from '../cancel/cancel-descendants.ts';
import type { ExecutionDeps } from '../deps.ts';
import { tellAgent, tellQueueOfFreed } from '../notices.ts';
import { type Phase, settledPhases } from '../phases.ts';
import { fromNow } from '../time.ts';
import { appendShutdown } from '../timeline/timeline.ts';
import { resumeLost, retryOrError, timesResumed } from '../transitions/relaunch.ts';
import type { Status } from '../transitions/transition.ts';
import { err, errEnded, failUnfit } from '../transitions/transitions.ts';

/** Describes an execution whose sandbox ended before the agent reported the end of its turn. */
export interface EndedTurn {
  /** `claimed`: the agent had not begun its first turn. */
  readonly phase: 'claimed' | 'running';
  readonly kind: SandboxEnd['kind'];
  /** Value of `on_worker_loss` in the run's stored configuration. */
  readonly policy: string | null;
  /** Number of times that the turn was already resumed. */
  readonly resumes: number;
}

/**
 * How a run continues after the end of its sandbox:
 * - `retry`: the agent had done nothing, so the launch is repeated.
 * - `unfit`: no launch can succeed, so the run becomes FAILED.
 * - `resume`: the turn continues on another machine.
 * - `resumed_too_often` and `error`: the run ends in ERROR.
 */
type EndDecision = 'retry' | 'unfit' | 'resume' | 'resumed_too_often' | 'error';

/**
 * Kinds of ends that the machine or its operator caused. After other ends, resuming the turn would not help: an agent that exited by itself
 * would exit again in the next sandbox.
 */
const lossKinds: ReadonlySet<SandboxEnd['kind']> = new Set(['stopped', 'lost', 'silent']);

/** Decides how a run continues after the end of its sandbox. */
export function decideEnd({ phase, kind, policy, resumes }: EndedTurn): EndDecision {
  if (phase === 'claimed') return kind === 'unfit' ? 'unfit' : 'retry';
  if (policy !== 'resume' || !lossKinds.has(kind)) return 'error';
  return resumes < maxResumesOfTurn ? 'resume' : 'resumed_too_often';
}

/** Describes how the sandbox of an execution ended. The worker reported this, or the service concluded it. */
export interface SandboxEnd {
  /**
   * - `exited`: the agent's process ended.
   * - `stopped`: the worker was stopped and ended the sandbox.
   * - `not_created`: the sandbox could not be started.
   * - `unfit`: no sandbox can meet the run's requirements, so a retry would not help.
   * - `lost`: the worker or the supervisor of the sandbox has died, or the cluster has lost or ended the pod.
   * - `silent`: the lease has expired. `endSandbox` checks the lease again under the lock.
   */
  readonly kind: 'exited' | 'stopped' | 'not_created' | 'unfit' | 'lost' | 'silent';
  /** Describes the end in a sentence for people. */
  readonly message: string;
  /** Exit code of the agent's process; 128 + the number of the signal if a signal ended the process. */
  readonly exitCode?: number;
  /** Why the task failed, as a public worker reports it. */
  readonly cause?: FailureCause;
  /** The state of the task's Kubernetes objects, as a public worker reports it. */
  readonly kubernetes?: KubernetesFailure;
  /**
   * Absent: the sandbox is gone. `leaving`: the sandbox's processes are ending. `unproven`: nothing proves that the sandbox has ended, so
   * the worker is ordered to end it. With `leaving` and `unproven`, the next execution of the run waits until the sandbox has ended.
   */
  readonly remains?: 'leaving' | 'unproven';
}

const lockRun = defineStatement({
  name: 'lock_run_of_execution',
  text: `
    SELECT FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1 FOR UPDATE OF r`,
  row: {},
});

/**
 * This statement runs separately, after the run's row was locked. So it sees changes that other transactions committed while this
 * transaction waited for the lock.
 */
const readPhase = defineStatement({
  name: 'read_phase',
  text: `
    SELECT r.id AS run_id, r.state, r.current_execution_id = e.id AS is_current, e.phase,
      e.lease_until < clock_timestamp() AS lease_over, q.config->>'on_worker_loss' AS policy, ${timesResumed('e')} AS resumes,
      ${sealedSecretsOf('r.id')} AS sealed
    FROM executions e JOIN runs r ON r.id = e.run_id JOIN run_requests q ON q.run_id = r.id WHERE e.id = $1`,
  row: {
    run_id: uuid,
    state: text<RunState>(),
    is_current: nullable(boolean),
    phase: text<Phase>(),
    lease_over: nullable(boolean),
    policy: nullable(text()),
    resumes: integer,
    sealed: json<SealedSecrets>(),
  },
});

/** Ends an execution whose run already has its final state. */
const endStopping = defineStatement({
  name: 'end_stopping_execution',
  text: `
    UPDATE executions SET phase = 'ended', ended_at = clock_timestamp(), idle_until = NULL, deadline_at = NULL, exit = $2::jsonb
    WHERE id = $1 AND phase IN ${settledPhases} RETURNING ${tellQueueOfFreed('executions')}`,
  row: {},
});

/**
 * Orders the worker to end a sandbox whose end is not proven. The lease ends at once, so that the execution ends at the stop deadline even
 * if the worker does not answer. A repeated order does not move the deadline.
 */
const orderEnd = defineStatement({
  name: 'order_end_of_sandbox',
  text: `
    UPDATE executions SET phase = 'stopping', stop_reason = 'ordered', idle_until = NULL, deadline_at = NULL,
      stop_deadline = least(stop_deadline, ${fromNow('$2')}), lease_until = least(lease_until, clock_timestamp())
    WHERE id = $1 AND phase IN ${settledPhases} RETURNING ${tellAgent('run_id')}`,
  row: {},
});

const keepExit = defineStatement({
  name: 'keep_exit',
  text: 'UPDATE executions SET exit = $2::jsonb WHERE id = $1',
  row: {},
});

type ExecutionRow = RowOf<typeof readPhase>;

/**
 * Records that a sandbox has ended. If the agent had reported the end of its turn, only the execution ends. Otherwise the result depends on
 * the state of the run. If the run was not INPROGRESS yet, it is tried again, or becomes FAILED if no attempt can succeed. If the run was
 * INPROGRESS, it resumes its turn if `on_worker_loss` asks for this and the machine was lost. All other runs end in ERROR: with
 * `resource_unavailable`, retryable, if the worker was stopped, else with `agent_process_failed`. A run becomes CANCELLED if one of its
 * ancestors was cancelled.
 */
export async function endSandbox(deps: ExecutionDeps, executionId: string, end: SandboxEnd): Promise<void> {
  await deps.db.transaction(async (tx) => {
    await tx.query(lockRun, [executionId]);
    await endSandboxWithin(deps, tx, executionId, end);
  });
}

/**
 * Like `endSandbox`, in the caller's transaction. The caller has locked the run's row and checked that the worker may end the execution.
 */
export async function endSandboxWithin(
  deps: ExecutionDeps,
  tx: Queryable,
  executionId: string,
  reported: SandboxEnd,
): Promise<void> {
  const [execution] = await tx.query(readPhase, [executionId]);
  if (!execution) return;
  // Redact the worker's report, because it may contain the last output of the agent.
  const grantedSecrets = toSealedValues(execution.sealed);
  const end = withoutSecrets(deps, { grantedSecrets }, reported);
  if (end.kind === 'silent' && !execution.lease_over) return;
  const isDebugged = execution.phase === 'running' && isTerminal(execution.state);
  if (execution.phase === 'stopping' || execution.phase === 'idle' || isDebugged) {
    await endSettled(deps, tx, execution.run_id, executionId, end);
    return;
  }
  if (!execution.is_current || (execution.phase !== 'claimed' && execution.phase !== 'running')) return;
  if (await followCancel(deps, tx, { runId: execution.run_id, executionId })) {
    await endSettled(deps, tx, execution.run_id, executionId, end);
    return;
  }
  await decide(deps, tx, execution, executionId, end);
  const { remains, ...exit } = end;
  await tx.query(keepExit, [executionId, JSON.stringify(exit)]);
  if (remains === 'unproven') await tx.query(orderEnd, [executionId, deps.timing.cancelGraceSeconds]);
  if (remains === undefined) await appendShutdown(tx, { runId: execution.run_id, executionId, payload: { ...exit } });
}

/** Ends an execution without changing its run. If the end of the sandbox is not proven, only orders the worker to end the sandbox. */
async function endSettled(
  deps: ExecutionDeps,
  tx: Queryable,
  runId: string,
  executionId: string,
  { remains, ...exit }: SandboxEnd,
): Promise<void> {
  if (remains === 'unproven') {
    await tx.query(keepExit, [executionId, JSON.stringify(exit)]);
    await tx.query(orderEnd, [executionId, deps.timing.cancelGraceSeconds]);
    return;
  }
  await tx.query(endStopping, [executionId, JSON.stringify(exit)]);
  await appendShutdown(tx, { runId, executionId, payload: { ...exit } });
}

const endClosed = defineStatement({
  name: 'end_closed_execution',
  text: `
    UPDATE executions SET phase = 'ended', ended_at = clock_timestamp(), deadline_at = NULL
    WHERE id = $1 AND phase = 'stopping' RETURNING exit, ${tellQueueOfFreed('executions')}`,
  row: { exit: nullable(json<Record<string, unknown>>()) },
});

/**
 * Ends a stopping execution whose worker has proved that the sandbox is gone. The reason for the end that was reported before stays, and
 * the state of the run does not change. In another phase, changes nothing. The caller has locked the run's row and checked that the worker
 * may end the execution.
 */
export async function endClosedWithin(tx: Queryable, runId: string, executionId: string): Promise<void> {
  const [ended] = await tx.query(endClosed, [executionId]);
  if (!ended) return;
  const payload = ended.exit ?? { kind: 'exited', message: 'The worker has removed the sandbox.' };
  await appendShutdown(tx, { runId, executionId, payload });
}

async function decide(
  deps: ExecutionDeps,
  tx: Queryable,
  execution: ExecutionRow,
  executionId: string,
  end: SandboxEnd,
): Promise<void> {
  const code = end.kind === 'not_created' || end.kind === 'stopped' ? 'resource_unavailable' : 'agent_process_failed';
  // If the worker was stopped, the run itself did not fail, so the error is retryable. A person decides whether to repeat the run's work.
  const status: Status = { message: end.message, code, retryable: end.kind === 'stopped' };
  const target = { runId: execution.run_id, executionId };
  const phase = execution.phase === 'claimed' ? 'claimed' : 'running';
  const decision = decideEnd({ ...execution, phase, kind: end.kind });
  const sandboxGone = end.remains === undefined;
  const endInError = (message: string) =>
    (sandboxGone ? errEnded : err)(tx, {
      ...target,
      status: { ...status, message },
      payload: { message, error_code: code },
      args: { stop_seconds: deps.timing.leaveSeconds },
    });
  switch (decision) {
    case 'retry':
      await retryOrError(deps, tx, { ...target, status, sandboxGone });
      return;
    case 'unfit': {
      const unfit: Status = { message: end.message, code: 'invalid_request', retryable: false };
      await failUnfit(tx, { ...target, status: unfit, payload: { message: end.message, error_code: unfit.code } });
      return;
    }
    case 'resume':
      await resumeLost(deps, tx, { ...target, status, sandboxGone });
      return;
    case 'resumed_too_often':
      await endInError(
        `${end.message} The turn was resumed ${execution.resumes} times already, so it was not resumed again.`,
      );
      return;
    case 'error':
      await endInError(end.message);
  }
}
