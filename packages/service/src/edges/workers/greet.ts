/** Handles the start of a worker's connection: gives it the executions that the worker still runs. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { shorten } from '@runyard/contract/wire/shorten';
import {
  hostRulesFeature,
  imagesFeature,
  type SandboxLevel,
  serviceImagesFeature,
  type WorkerHello,
} from '@runyard/contract/workers/worker-protocol';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { adoptExecutions, adoptOfPublicWorker, nameInstance } from '../../runs/executions/lease/adopt.ts';
import { updateWorkerConnection } from '../../runs/executions/lease/connection-rows.ts';
import { endSandbox } from '../../runs/executions/reconcile/sandbox-end.ts';
import { findInstances, newInstance } from './instances.ts';
import { findMissing } from './lost-connections.ts';
import type { OpenConnection } from './open-connection.ts';
import { lockOwnConnection } from './rights.ts';

/** Orders the worker to end a sandbox at once. */
export function orderStop(connection: OpenConnection, runId: string, executionId: string): void {
  connection.send({ type: 'task_cancellation', data: { task_id: runId, execution_id: executionId, grace_ms: 0 } });
}

const maxFeatures = 50;
/** Executions of a hello that are handled in one turn of the event loop. */
const executionsInTurn = 100;

/**
 * Returns the sandbox level of a worker with a limited number of features and with short texts, because each list of workers shows these
 * features.
 */
const shortened = ({ backend, features, missing }: SandboxLevel): SandboxLevel => ({
  backend,
  features: features.slice(0, maxFeatures).map((feature) => shorten(feature, 100)),
  missing: missing
    .slice(0, maxFeatures)
    .map(({ feature, reason }) => ({ feature: shorten(feature, 100), reason: shorten(reason, 500) })),
});

/**
 * Handles the hello of our own worker, and compares the worker's list of executions with the database in both directions. Orders the worker
 * to end sandboxes that the database does not assign to it. Treats an execution that the worker does not list as lost if the database
 * assigns it to this worker, or to an instance that this worker provably replaces. A worker without a valid token is a new instance and
 * gets a token. Throws `ConnectionEnded`.
 */
export async function greet(deps: ExecutionDeps, connection: OpenConnection, { data }: WorkerHello): Promise<void> {
  const { slots, draining, sandbox, version, adopt_seconds: adoptSeconds = 0 } = data;
  const { workerId } = connection;
  const listed = data.executions.map((execution) => execution.execution_id);
  const greeted = await deps.db.transaction(async (tx) => {
    await lockOwnConnection(tx, connection.id);
    const known = connection.instanceId ?? (await findInstances(tx, connection, data.token ? [data.token] : []))[0];
    const issued = known === undefined ? await newInstance(tx, connection) : null;
    const instanceId = known ?? issued?.id ?? '';
    await updateWorkerConnection(tx, {
      id: connection.id,
      instanceId,
      slots,
      draining,
      sandbox: shortened(sandbox),
      adoptSeconds,
      version,
    });
    await nameInstance(tx, connection.id, instanceId);
    const adopted = await adoptExecutions(tx, {
      connectionId: connection.id,
      instanceId,
      executionIds: listed,
      leaseSeconds: deps.timing.leaseSeconds,
    });
    const replaced = await findInstances(tx, connection, data.replaced_tokens ?? []);
    return { instanceId, token: issued?.token, adopted, replaced: replaced.filter((id) => id !== instanceId) };
  });
  const { instanceId, token, adopted, replaced } = greeted;
  connection.instanceId = instanceId;
  connection.slots = slots;
  connection.runsImages = sandbox.features.includes(imagesFeature);
  connection.holdsHosts = sandbox.features.includes(hostRulesFeature);
  connection.runsServiceImages = sandbox.features.includes(serviceImagesFeature);
  connection.draining = draining;
  const idleIds = new Set(data.executions.flatMap(({ idle, execution_id }) => (idle ? [execution_id] : [])));
  for (const { id, runId } of adopted) {
    const idle = idleIds.has(id);
    const awaits = idle ? undefined : false;
    connection.executions.set(id, { runId, assignmentId: null, idle, awaits, leaving: false });
  }
  for (const [index, { task_id: runId, execution_id: executionId }] of data.executions.entries()) {
    if (index % executionsInTurn === 0) await nextTurn();
    if (connection.executions.get(executionId)?.runId !== runId) orderStop(connection, runId, executionId);
  }
  const known = [...listed, ...connection.executions.keys()];
  const instanceIds = [instanceId, ...replaced];
  for (const executionId of await findMissing(deps.db, { connectionId: connection.id, instanceIds, listed: known })) {
    await endSandbox(deps, executionId, {
      kind: 'lost',
      message: `Worker ${workerId} was restarted and its sandbox ended with it.`,
    });
  }
  if (token !== undefined) connection.send({ type: 'worker_welcome', data: { token } });
  connection.ready = true;
}

/**
 * Handles a worker that sent no hello. The public worker lists no executions when it connects again. So the service assumes that this
 * worker still runs the executions of lost connections with the same name, team and pool. `runsImages` says whether the service assumes
 * that the worker runs container images, because the worker does not report this. Throws `ConnectionEnded`.
 */
export async function greetPublicWorker(
  deps: ExecutionDeps,
  connection: OpenConnection,
  runsImages: boolean,
): Promise<void> {
  const adopted = await deps.db.transaction(async (tx) => {
    await lockOwnConnection(tx, connection.id);
    return await adoptOfPublicWorker(tx, {
      connectionId: connection.id,
      leaseSeconds: deps.timing.leaseSeconds,
    });
  });
  for (const { id, runId } of adopted)
    connection.executions.set(id, { runId, assignmentId: null, idle: false, awaits: false, leaving: false });
  connection.runsImages = runsImages;
  connection.ready = true;
}
