import { randomUUIDv7 } from 'node:crypto';
import type { Settings } from '@runyard/contract/settings/settings';
import { hostRulesFeature, type WorkerHello, type WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { productVersion } from '@runyard/system/product-version';
import type { Logger } from 'pino';
import { keepAliveFile } from './alive-file.ts';
import { keySource, readApiKey } from './connection/api-key.ts';
import { type Connection, connect } from './connection/connection.ts';
import { openInstanceToken } from './connection/instance-token.ts';
import { createOutbox, type Outbox } from './connection/outbox.ts';
import { makeEgress } from './egress/egress.ts';
import { type Ending, makeEnding } from './ending.ts';
import { createExecutions, type Executions } from './executions/executions.ts';
import { type Health, watchHealth } from './health.ts';
import type { AdoptableSandbox } from './sandboxes/backend-kind.ts';
import type { SandboxLimits } from './sandboxes/limits.ts';
import type { SandboxBackend } from './sandboxes/sandbox.ts';
import type { DataFolderLock } from './state/data-folder-lock.ts';
import { keepWaitingFile } from './waiting-file.ts';

/** Longest time to make a test sandbox. A sandbox of another backend than bubblewrap may need an image or a machine first. */
const testMs = 120_000;

/** The facts about a worker that its settings define. */
export interface WorkerPlan {
  readonly settings: Settings;
  /** URL of the service without `/api/v1`. */
  readonly serviceRoot: string;
  readonly workerName: string;
  readonly slots: number;
  readonly limits: SandboxLimits;
  /** How long sandboxes wait for the next worker. 0: the sandboxes end with this worker. */
  readonly adoptSeconds: number;
}

/** The opened parts with which a worker carries out executions. */
export interface WorkerParts {
  readonly lock: DataFolderLock;
  /** Folder with the sandboxes. */
  readonly stateRoot: string;
  /** Sandboxes that earlier workers left. */
  readonly left: readonly AdoptableSandbox[];
  readonly backend: SandboxBackend;
  /** Removes the record of an execution after the service has confirmed its end. */
  readonly forget: (executionId: string) => void;
  /** Releases all parts. Called once, when the worker has closed its connection. */
  readonly close: () => Promise<void>;
}

/** Connects to the service, and carries out its executions until the worker ends. */
export async function work(plan: WorkerPlan, parts: WorkerParts, log: Logger): Promise<Ending> {
  const { lock, backend, forget } = parts;
  const outbox = createOutbox((confirmed) => {
    for (const { execution_id } of endsIn(confirmed)) forget(execution_id);
    ending.endWhenIdle();
  });
  const stopTelling = tellDoctor(lock.folder, backend, log);
  const health = await watchHealth({
    folder: parts.stateRoot,
    trySandbox: () => trySandbox(backend, plan.limits, forget),
    onChange: () => connection.sayStatus(),
    log,
  });
  const executions = createExecutions({
    ...plan,
    backend,
    health,
    serviceRoot: backend.agentServiceRoot ?? plan.serviceRoot,
    egress: makeEgress(plan.settings),
    harnessDir: plan.settings.RUNYARD_HARNESS_DIR,
    send: (message) => connection.send(message),
    onIdle: () => ending.endWhenIdle(),
    log,
  });
  const connection = connectWorker(plan, lock, { backend, health, executions, outbox }, () => void ending.end(2), log);
  const stopAliveFile = keepAliveFile(lock.folder, connection.isOpen);
  const ending = makeEnding({ executions, outbox, connection, backend, log, close });

  async function close(): Promise<void> {
    health.close();
    await connection.close();
    stopTelling?.();
    stopAliveFile();
    await backend.close();
    await parts.close();
  }

  // Adopts the executions before the first hello, because the hello lists them.
  executions.adopt(parts.left);
  return ending;
}

/** Writes the state of the pool of waiting sandboxes for `runyard doctor`. Returns the function that stops this. */
const tellDoctor = (folder: string, { waiting }: SandboxBackend, log: Logger) =>
  waiting &&
  keepWaitingFile(folder, waiting, (error) =>
    log.warn({ error: error.message }, 'doctor cannot see the waiting sandboxes'),
  );

/** Makes and removes a sandbox that belongs to no run. */
async function trySandbox(
  backend: SandboxBackend,
  limits: SandboxLimits,
  forget: WorkerParts['forget'],
): Promise<void> {
  const ids = { executionId: randomUUIDv7(), taskId: randomUUIDv7() };
  const tested = await backend.create({ ...ids, limits, isLimited: true, files: [] }, AbortSignal.timeout(testMs));
  await tested.dispose();
  forget(ids.executionId);
}

interface ConnectedParts {
  readonly backend: SandboxBackend;
  readonly health: Health;
  readonly executions: Executions;
  readonly outbox: Outbox;
}

/** Connects to the service, presents this worker, and passes the messages of the service to the executions. */
function connectWorker(
  { settings, serviceRoot, workerName, slots, adoptSeconds }: WorkerPlan,
  lock: DataFolderLock,
  { backend, health, executions, outbox }: ConnectedParts,
  onRefused: () => void,
  log: Logger,
): Connection {
  const token = openInstanceToken(lock.folder, log);
  const level = backend.describe();
  return connect({
    serviceRoot,
    workerName,
    readKey: () => readApiKey(settings),
    keySource: keySource(settings),
    outbox,
    hello: (): WorkerHello => ({
      type: 'worker_hello',
      data: {
        worker_id: workerName,
        instance_id: lock.instanceId,
        ...token.proof(),
        slots,
        // For the service, the executions whose end it has not confirmed yet still run on this worker.
        executions: [...executions.list(), ...endsIn(outbox.kept().map(({ message }) => message))],
        sandbox: { ...level, features: [...level.features, hostRulesFeature] },
        draining: executions.isDraining(),
        version: productVersion(),
        adopt_seconds: adoptSeconds,
      },
    }),
    status: () => {
      const [disk, problem] = [health.disk(), health.problem()];
      return disk && { type: 'worker_status', data: { disk, ...(problem === undefined ? {} : { problem }) } };
    },
    onToken: token.keep,
    onMessage: (message) => executions.handle(message),
    onRefused,
    log,
  });
}

/** Returns the executions whose end these messages report. */
const endsIn = (messages: readonly WorkerMessage[]): { task_id: string; execution_id: string }[] =>
  messages.flatMap(({ type, data }) =>
    (type === 'task_completed' || type === 'task_failed') && data.execution_id !== undefined
      ? [{ task_id: data.task_id, execution_id: data.execution_id }]
      : [],
  );
