/** What a message of a worker does. Every effect is a compare-and-set: a late or repeated message changes nothing. */
import type { WorkerHello, WorkerMessage } from '@runyard/contract/worker-protocol';
import type { Engine } from '../executions/engine.ts';
import { endSandbox } from '../executions/reconcile/sandbox-end.ts';
import { appendTimelineEvent } from '../executions/timeline/append.ts';
import { heldPhases } from '../executions/transitions/phases.ts';
import { claim, requeue } from '../executions/transitions/transitions.ts';
import type { Statement } from '../store/database/database.ts';
import type { Connection } from './connection.ts';
import { adoptExecutions, findMissing, updateWorkerConnection } from './connections.ts';

const keepSandbox: Statement = {
  name: 'keep_sandbox',
  text: "UPDATE executions SET sandbox = $2::jsonb WHERE id = $1 AND phase IN ('assigned', 'claimed', 'running') AND sandbox IS NULL RETURNING id",
};

/** Applies one message. The public worker names only the task: its execution is the one that the connection holds. */
export async function handleWorkerMessage(
  engine: Engine,
  connection: Connection,
  message: WorkerMessage,
): Promise<void> {
  if (message.type === 'worker_hello') return await greet(engine, connection, message);
  const { task_id: runId } = message.data;
  const executionId = message.data.execution_id ?? heldExecution(connection, runId);
  const held = executionId === undefined ? undefined : connection.held.get(executionId);
  if (executionId === undefined || !held || held.runId !== runId) {
    engine.log.warn(
      { worker: connection.workerId, type: message.type, run: runId },
      'message about an execution that this connection does not hold',
    );
    return;
  }
  switch (message.type) {
    case 'task_claimed': {
      const claimed = await claimHeld(engine, connection, runId, executionId);
      if (!claimed && !(await isClaimed(engine, connection, executionId))) stop(connection, runId, executionId);
      return;
    }
    case 'task_rejected':
      if (held.assignmentId !== null)
        await requeue(engine.db, { runId, executionId, args: { assignment_id: held.assignmentId } });
      connection.held.delete(executionId);
      return;
    case 'sandbox_ready': {
      const { backend, spawn_ms } = message.data;
      const first = await engine.db.query(keepSandbox, [executionId, JSON.stringify({ backend })]);
      if (first.length === 1)
        await appendTimelineEvent(engine.db, {
          runId,
          executionId,
          type: 'worker_container_ready',
          payload: { backend, spawn_ms },
        });
      return;
    }
    case 'task_completed': {
      await claimHeld(engine, connection, runId, executionId);
      const end = { kind: 'exited', message: message.data.message, exitCode: 0 } as const;
      await endSandbox(engine, executionId, end, connection.id);
      release(connection, executionId);
      return;
    }
    case 'task_failed': {
      const { exit_code: exitCode, failure, message: text } = message.data;
      await claimHeld(engine, connection, runId, executionId);
      const kind = failure && failure.phase !== 'run' ? 'not_created' : 'exited';
      const end = { kind, message: text, ...(exitCode === undefined ? {} : { exitCode }) } as const;
      await endSandbox(engine, executionId, end, connection.id);
      release(connection, executionId);
      return;
    }
  }
}

/**
 * PENDING → CLAIMED for the assignment that this connection was given. Also before an end that comes without a claim: it
 * counts as a try then, instead of going round between queue and worker for ever.
 */
async function claimHeld(engine: Engine, connection: Connection, runId: string, executionId: string): Promise<boolean> {
  const assignmentId = connection.held.get(executionId)?.assignmentId;
  if (!assignmentId) return false;
  const args = { assignment_id: assignmentId, lease_seconds: engine.timing.leaseSeconds };
  return await claim(engine.db, { runId, executionId, args, payload: { worker_id: connection.workerId } });
}

const readHolder: Statement = {
  name: 'read_holder',
  text: `SELECT 1 FROM executions WHERE id = $1 AND connection_id = $2 AND phase IN ${heldPhases}`,
};

/** The claim may have been made by the agent's first call, which was faster. */
async function isClaimed(engine: Engine, connection: Connection, executionId: string): Promise<boolean> {
  return (await engine.db.query(readHolder, [executionId, connection.id])).length === 1;
}

function stop(connection: Connection, runId: string, executionId: string): void {
  connection.send({ type: 'task_cancellation', data: { task_id: runId, execution_id: executionId, grace_ms: 0 } });
}

function release(connection: Connection, executionId: string): void {
  connection.held.delete(executionId);
  connection.ordersSent.delete(executionId);
}

function heldExecution(connection: Connection, runId: string): string | undefined {
  for (const [executionId, held] of connection.held) if (held.runId === runId) return executionId;
  return undefined;
}

/**
 * Compares the worker's list with the record, both ways: what it holds and should not, it is told to end; what the
 * record places in it (or in an instance that it replaces) and it does not hold, is lost.
 */
async function greet(engine: Engine, connection: Connection, { data }: WorkerHello): Promise<void> {
  const { instance_id: instanceId, slots, draining, sandbox } = data;
  connection.instanceId = instanceId;
  connection.slots = slots;
  connection.draining = draining;
  await updateWorkerConnection(engine.db, { id: connection.id, instanceId, slots, draining, sandbox });
  const listed = data.executions.map((execution) => execution.execution_id);
  const { workerId } = connection;
  const adopted = await adoptExecutions(engine.db, {
    connectionId: connection.id,
    workerId,
    executionIds: listed,
    leaseSeconds: engine.timing.leaseSeconds,
  });
  const toldIdle = new Set(data.executions.flatMap(({ idle, execution_id }) => (idle ? [execution_id] : [])));
  for (const { id, runId } of adopted)
    connection.held.set(id, { runId, assignmentId: null, idle: toldIdle.has(id), leaving: false });
  for (const execution of data.executions) {
    if (!connection.held.has(execution.execution_id)) stop(connection, execution.task_id, execution.execution_id);
  }
  const instanceIds = [instanceId, ...data.replaces];
  const known = [...listed, ...connection.held.keys()];
  for (const executionId of await findMissing(engine.db, { workerId, instanceIds, listed: known })) {
    await endSandbox(engine, executionId, {
      kind: 'lost',
      message: `Worker ${workerId} was restarted and its sandbox ended with it.`,
    });
  }
  connection.ready = true;
}
