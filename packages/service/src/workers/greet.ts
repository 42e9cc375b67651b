/** Takes a worker on: what it holds hangs on its new connection. */
import type { WorkerHello } from '@runyard/contract/worker-protocol';
import type { Engine } from '../executions/engine.ts';
import { endSandbox } from '../executions/reconcile/sandbox-end.ts';
import type { Connection } from './connection.ts';
import {
  adoptExecutions,
  adoptOfPublicWorker,
  findMissing,
  nameInstance,
  updateWorkerConnection,
} from './connections.ts';
import { findInstances, newInstance } from './instances.ts';
import { lockOwnConnection } from './rights.ts';

/** Tells the worker to end a sandbox at once. */
export function orderStop(connection: Connection, runId: string, executionId: string): void {
  connection.send({ type: 'task_cancellation', data: { task_id: runId, execution_id: executionId, grace_ms: 0 } });
}

/**
 * Handles the hello of our own worker: compares its list with the record, both ways. What it holds and should not, it is
 * told to end. What the record places in it (or in an instance that it proves to replace) and it does not hold, is lost.
 * A worker without a valid token is a new instance, which holds nothing yet; it is sent a token. Throws `ConnectionEnded`.
 */
export async function greet(engine: Engine, connection: Connection, { data }: WorkerHello): Promise<void> {
  const { slots, draining, sandbox } = data;
  const { workerId } = connection;
  const listed = data.executions.map((execution) => execution.execution_id);
  const taken = await engine.db.transaction(async (tx) => {
    await lockOwnConnection(tx, connection.id);
    const known = connection.instanceId ?? (await findInstances(tx, connection, data.token ? [data.token] : []))[0];
    const issued = known === undefined ? await newInstance(tx, connection) : null;
    const instanceId = known ?? issued?.id ?? '';
    await updateWorkerConnection(tx, { id: connection.id, instanceId, slots, draining, sandbox });
    await nameInstance(tx, connection.id, instanceId);
    const adopted = await adoptExecutions(tx, {
      connectionId: connection.id,
      instanceId,
      executionIds: listed,
      leaseSeconds: engine.timing.leaseSeconds,
    });
    const replaced = await findInstances(tx, connection, data.replaced_tokens ?? []);
    return { instanceId, token: issued?.token, adopted, replaced: replaced.filter((id) => id !== instanceId) };
  });
  const { instanceId, token, adopted, replaced } = taken;
  connection.instanceId = instanceId;
  connection.slots = slots;
  connection.draining = draining;
  const toldIdle = new Set(data.executions.flatMap(({ idle, execution_id }) => (idle ? [execution_id] : [])));
  for (const { id, runId } of adopted)
    connection.held.set(id, { runId, assignmentId: null, idle: toldIdle.has(id), leaving: false });
  for (const { task_id: runId, execution_id: executionId } of data.executions) {
    if (connection.held.get(executionId)?.runId !== runId) orderStop(connection, runId, executionId);
  }
  const known = [...listed, ...connection.held.keys()];
  const instanceIds = [instanceId, ...replaced];
  for (const executionId of await findMissing(engine.db, { connectionId: connection.id, instanceIds, listed: known })) {
    await endSandbox(engine, executionId, {
      kind: 'lost',
      message: `Worker ${workerId} was restarted and its sandbox ended with it.`,
    });
  }
  if (token !== undefined) connection.send({ type: 'worker_welcome', data: { token } });
  connection.ready = true;
}

/**
 * Takes on a worker that said no hello: the public one lists nothing when it comes back. Assume that it still runs what an
 * earlier connection of its name, in its team and pool, held. Throws `ConnectionEnded`.
 */
export async function takeOnPublicWorker(engine: Engine, connection: Connection): Promise<void> {
  const adopted = await engine.db.transaction(async (tx) => {
    await lockOwnConnection(tx, connection.id);
    return await adoptOfPublicWorker(tx, {
      connectionId: connection.id,
      leaseSeconds: engine.timing.leaseSeconds,
    });
  });
  for (const { id, runId } of adopted)
    connection.held.set(id, { runId, assignmentId: null, idle: false, leaving: false });
  connection.ready = true;
}
