/**
 * Applies the messages of workers. Each message takes effect in one transaction. The transaction first locks the run and checks that the
 * connection may act on the execution. Every effect is a compare-and-set, so a late or repeated message changes nothing.
 */

import { shorten } from '@runyard/contract/wire/shorten';
import {
  type FailureCause,
  type TaskFailure,
  unfitReasons,
  type WorkerHello,
  type WorkerMessage,
  type WorkerStatus,
} from '@runyard/contract/workers/worker-protocol';
import { count } from '../../platform/metrics/record.ts';
import { afterCommit, type Queryable } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { updateWorkerStatus } from '../../runs/executions/lease/connection-rows.ts';
import type { Phase } from '../../runs/executions/phases.ts';
import { endClosedWithin, endSandboxWithin, type SandboxEnd } from '../../runs/executions/reconcile/sandbox-end.ts';
import {
  addReadySandbox,
  appendDeniedConnections,
  appendImageStep,
  appendServiceOutput,
} from '../../runs/executions/timeline/worker-reports.ts';
import { claim, requeue } from '../../runs/executions/transitions/transitions.ts';
import { greet, orderStop } from './greet.ts';
import type { OpenConnection } from './open-connection.ts';
import { lockServed } from './rights.ts';

type ExecutionMessage = Exclude<WorkerMessage, WorkerHello | WorkerStatus>;

/** Returns true for a message about the worker itself. All other messages are about an execution. */
export const isOfWorker = (message: WorkerMessage): message is WorkerHello | WorkerStatus =>
  message.type === 'worker_hello' || message.type === 'worker_status';

/** Returns true for a message that the worker repeats until it is acknowledged. */
export const isNumbered = (message: WorkerMessage): message is ExecutionMessage & { seq: number } =>
  !isOfWorker(message) && message.seq !== undefined;

/** The execution of a message, with the assignment by which the connection got the execution. */
interface Target {
  readonly runId: string;
  readonly executionId: string;
  readonly assignmentId: string | null;
}

/** Reasons that Runyard's own worker gives for the end of a sandbox whose agent did not fail. Workers of other kinds report none of these
 * reasons. */
const endsWithoutFault = new Map<string, SandboxEnd['kind']>([
  ['worker_stopped', 'stopped'],
  ['worker_lost', 'lost'],
  ['supervisor_lost', 'lost'],
  ['node_lost', 'lost'],
  ['pod_evicted', 'lost'],
  ['pod_lost', 'lost'],
]);

/** Values of `failure_cause` which mean that the machine was lost, and that the agent did not fail. */
const lossCauses: ReadonlySet<FailureCause> = new Set(['eviction', 'infrastructure_timeout', 'backend_failure']);

/** `failure_reason` of oz-agent-worker if a signal stopped the worker. The worker may report this before the agent's processes have ended. */
const gracefulShutdown = 'graceful_shutdown';

/**
 * `held`: the connection keeps the execution. `released`: the connection no longer has the execution. `refused`: the connection may not act
 * on the execution.
 */
type Outcome = 'held' | 'released' | 'refused';

/**
 * Applies one message. The public worker names only the run: its connection has one execution of each run. Returns true if the connection
 * may take more work than before.
 */
export async function handleWorkerMessage(
  deps: ExecutionDeps,
  connection: OpenConnection,
  message: WorkerMessage,
): Promise<boolean> {
  if (message.type === 'worker_hello') {
    await greet(deps, connection, message);
    return true;
  }
  if (message.type === 'worker_status') {
    const { disk, problem } = message.data;
    const had = connection.problem;
    connection.problem = problem === undefined ? undefined : shorten(problem, 500);
    await updateWorkerStatus(deps.db, connection.id, { disk, problem: connection.problem });
    if (connection.problem !== had)
      deps.log.warn(
        { worker: connection.workerId, problem: connection.problem },
        connection.problem === undefined ? 'a worker takes runs again' : 'a worker takes no new runs',
      );
    return had !== undefined && problem === undefined;
  }
  const { task_id: runId } = message.data;
  const executionId = message.data.execution_id ?? heldExecution(connection, runId);
  const current = executionId === undefined ? undefined : heldOrClosed(connection, executionId, message);
  if (executionId === undefined || !current || current.runId !== runId) {
    deps.log.warn(
      { worker: connection.workerId, type: message.type, run_id: runId },
      'message about an execution that this connection does not hold',
    );
    return false;
  }
  const target: Target = { runId, executionId, assignmentId: current.assignmentId };
  const outcome = await deps.db.transaction(async (tx) => {
    const phase = await lockServed(tx, target, connection.id);
    return phase === null ? 'refused' : await apply(deps, tx, connection, target, phase, message);
  });
  if (outcome === 'held') return false;
  connection.executions.delete(executionId);
  connection.ordersSent.delete(executionId);
  if (outcome === 'refused') {
    deps.log.warn(
      { worker: connection.workerId, type: message.type, run_id: runId },
      'message about an execution that this connection may not act on',
    );
    if (message.type === 'task_claimed' || message.type === 'sandbox_ready') orderStop(connection, runId, executionId);
  }
  return true;
}

async function apply(
  deps: ExecutionDeps,
  tx: Queryable,
  connection: OpenConnection,
  target: Target,
  phase: Phase,
  message: ExecutionMessage,
): Promise<Outcome> {
  const { runId, executionId, assignmentId } = target;
  switch (message.type) {
    case 'task_claimed':
      // The agent's first call may have claimed the execution already.
      return phase !== 'assigned' || (await claimAssigned(deps, tx, connection, target)) ? 'held' : 'refused';
    case 'task_rejected':
      if (assignmentId !== null) await requeue(tx, { runId, executionId, args: { assignment_id: assignmentId } });
      return 'released';
    case 'sandbox_ready': {
      const { backend, spawn_ms, limits, network } = message.data;
      const sandbox = { backend, spawn_ms, ...(limits ? { limits } : {}), ...(network ? { network } : {}) };
      await addReadySandbox(tx, target, sandbox);
      return 'held';
    }
    case 'image_step':
      await appendImageStep(tx, target, message.data);
      return 'held';
    case 'service_output':
      await appendServiceOutput(deps, tx, target, message.data);
      return 'held';
    case 'connections_denied':
      await appendDeniedConnections(deps, tx, target, message.data);
      return 'held';
    case 'task_completed': {
      const { task_state: state, execution_id } = message.data;
      // The public worker names only the run, and reports a cancel only after an order. If this execution is not stopping, it has no such
      // order, so the message is about an earlier execution of the run.
      if (state === 'CANCELLED' && execution_id === undefined && phase !== 'stopping') return 'held';
      if (phase === 'assigned') await claimAssigned(deps, tx, connection, target);
      await endSandboxWithin(deps, tx, executionId, { kind: 'exited', message: message.data.message, exitCode: 0 });
      return 'released';
    }
    case 'task_failed': {
      const {
        exit_code: exitCode,
        failure,
        failure_reason: reason,
        failure_cause: cause,
        message: text,
      } = message.data;
      const isStopping = failure === undefined && (reason === gracefulShutdown || cause === 'operator_shutdown');
      const { kubernetes } = message.data.failure_details ?? {};
      if (phase === 'assigned') await claimAssigned(deps, tx, connection, target);
      if (failure) afterCommit(tx, () => count('runyard_sandbox_failures_total', failure));
      const end: SandboxEnd = {
        kind: isStopping ? 'stopped' : kindOfFailure(failure, cause),
        message: text,
        ...(isStopping ? { remains: 'leaving' } : {}),
        ...(exitCode === undefined ? {} : { exitCode }),
        ...(cause === undefined ? {} : { cause }),
        ...(kubernetes === undefined ? {} : { kubernetes }),
      };
      await endSandboxWithin(deps, tx, executionId, end);
      return 'released';
    }
    case 'execution_closed':
      // The worker sends this as the answer to an order. Without an order, the report of the end of the task decides the state of the run.
      await endClosedWithin(tx, runId, executionId);
      return phase === 'stopping' || phase === 'ended' ? 'released' : 'held';
  }
}

function kindOfFailure(failure: TaskFailure | undefined, cause: FailureCause | undefined): SandboxEnd['kind'] {
  if (failure === undefined) return cause !== undefined && lossCauses.has(cause) ? 'lost' : 'exited';
  // A machine may be lost before the worker has seen the sandbox start, but after the agent has begun its turn.
  const kind = endsWithoutFault.get(failure.reason);
  if (kind !== undefined) return kind;
  if (failure.phase === 'run') return 'exited';
  return unfitReasons.has(failure.reason) ? 'unfit' : 'not_created';
}

/**
 * Changes the run of this connection's assignment from PENDING to CLAIMED. If a sandbox ends without a claim, the claim is recorded first,
 * so that the end counts as a try. If the end counted as a rejection, the execution would go back to the queue and to the worker again and
 * again.
 */
async function claimAssigned(
  deps: ExecutionDeps,
  tx: Queryable,
  connection: OpenConnection,
  { runId, executionId, assignmentId }: Target,
): Promise<boolean> {
  if (assignmentId === null) return false;
  const args = { assignment_id: assignmentId, lease_seconds: deps.timing.leaseSeconds };
  return await claim(tx, { runId, executionId, args, payload: { worker_id: connection.workerId } });
}

/**
 * Returns the execution of a message. A worker may say that an execution is closed after it has reported the end of the execution, and
 * then the connection does not list the execution any more. The row of the execution decides whether the connection may act on it.
 */
function heldOrClosed(
  { executions }: OpenConnection,
  executionId: string,
  { type, data }: ExecutionMessage,
): { readonly runId: string; readonly assignmentId: string | null } | undefined {
  const isNamed = type === 'execution_closed' && isUuid(executionId) && isUuid(data.task_id);
  return executions.get(executionId) ?? (isNamed ? { runId: data.task_id, assignmentId: null } : undefined);
}

function heldExecution(connection: OpenConnection, runId: string): string | undefined {
  for (const [executionId, held] of connection.executions) if (held.runId === runId) return executionId;
  return undefined;
}
