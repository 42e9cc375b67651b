import { randomUUIDv7 } from 'node:crypto';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Settings } from '@runyard/contract/settings/settings';
import { hostRulesFeature } from '@runyard/contract/workers/worker-protocol';
import { productVersion } from '@runyard/system/product-version';
import type { Logger } from 'pino';
import { keepAliveFile } from './alive-file.ts';
import { adoptLeft, openBackend } from './backends/open.ts';
import { sweepLeftovers } from './backends/sweep.ts';
import { openBudget } from './cache/budget.ts';
import { openCache } from './cache/cache.ts';
import { openKeptWorkspaces } from './cache/kept-workspaces.ts';
import { serveCache } from './cache/serve.ts';
import { keySource, readApiKey } from './connection/api-key.ts';
import { connect } from './connection/connection.ts';
import { openInstanceToken } from './connection/instance-token.ts';
import { createOutbox } from './connection/outbox.ts';
import { makeEgress } from './egress/egress.ts';
import { createExecutions } from './executions/executions.ts';
import { watchHealth } from './health.ts';
import { folderCopies } from './sandboxes/bubblewrap/copy-folders.ts';
import { sandboxLimits } from './sandboxes/limits.ts';
import { supervisorLabel } from './sandboxes/markers.ts';
import { lockDataFolder } from './state/data-folder-lock.ts';
import { removeTree } from './state/remove-tree.ts';
import { chooseStateRoot, removeAbandonedRoots, type StateRoot } from './state/state-root.ts';
import { openSupervisors, type Supervisors } from './supervisor-client/supervisors.ts';
import { keepWaitingFile } from './waiting-file.ts';

/**
 * Maximum time that the worker waits, before it ends, until the service has confirmed the last messages. `lastWordsMs` is for a worker
 * that has finished its runs. `lastWordsStoppingMs` is for a worker that was told to end its runs at once, or that leaves its
 * sandboxes to the next worker.
 */
const lastWordsMs = 5000;
const lastWordsStoppingMs = 1500;
/** A worker that leaves its sandboxes to the next worker waits at most this long until sandboxes that are being made have started. */
const settleMs = 5000;
/** Longest time to make a test sandbox. A sandbox of another backend than bubblewrap may need an image or a machine first. */
const testMs = 120_000;

export interface WorkerContext {
  readonly log: Logger;
  /** Path of the agent's `main.ts`. Default: the file in `packages/agent`. */
  readonly agentEntry?: string;
  /**
   * Milliseconds to wait for the data folder while another worker uses it. Some callers wait, because a worker whose parent has crashed
   * needs some seconds to end. Default: 0.
   */
  readonly lockPatienceMs?: number;
}

/** A running worker. */
export interface Worker {
  /** Rejects new executions from now on. When the last execution has ended, the worker ends. */
  drain(): void;
  /**
   * Leaves the sandboxes to the next worker of the data folder and ends. If the sandboxes cannot continue without this worker, does the
   * same as `drain`.
   */
  terminate(): void;
  /**
   * Leaves the sandboxes to the next worker of the data folder and ends. If the sandboxes cannot continue without this worker, does the
   * same as `stop`.
   */
  leave(): void;
  /**
   * Ends all executions and then the worker, within about six seconds. Takes longer if the kernel cannot end a process of a sandbox at
   * once.
   */
  stop(): Promise<void>;
  /**
   * Resolves when the worker has ended and released all resources. The exit code is 2 if the service has never accepted the worker's key.
   */
  readonly drained: Promise<{ exitCode: 0 | 2 }>;
  /** Id with which the service identifies this worker process. */
  readonly instanceId: string;
  /** Folder with the sandboxes and the agent's bundle. */
  readonly stateRoot: string;
}

/** The error if the worker cannot run here. The message has the reason and the next step. */
export class WorkerRefused extends Error {
  override readonly name = 'WorkerRefused';
}

/** Returns `runyard-{hostname}`. Replaces characters that a worker name must not contain. */
export function defaultWorkerName(hostname: string): string {
  return `runyard-${hostname.replace(/[^A-Za-z0-9._-]+/g, '-')}`.slice(0, 63);
}

const defaultAgentEntry = fileURLToPath(new URL('../../agent/src/main.ts', import.meta.url));

/** Returns whether the sandboxes of these settings continue when their worker ends. */
const outlives = (settings: Settings): boolean => settings.RUNYARD_SANDBOX !== 'none';

/** Takes the lock of the data folder. Waits at most `lockPatienceMs` if another worker uses the folder. */
async function waitForDataFolder(dataDir: string, { log, lockPatienceMs = 0 }: WorkerContext) {
  const deadline = performance.now() + lockPatienceMs;
  let lock = await lockDataFolder(dataDir);
  if ('heldBy' in lock && lockPatienceMs > 0)
    log.info({ holder: lock.heldBy }, 'another worker uses the data folder: waiting for its end');
  while ('heldBy' in lock && performance.now() < deadline) {
    await sleep(50);
    lock = await lockDataFolder(dataDir);
  }
  return lock;
}

/** Opens and serves the cache, which contains data that runs leave to later runs. */
async function openStore(
  folder: string,
  maxBytes: number,
  { folder: stateRoot }: StateRoot,
  socket: string,
  log: Logger,
) {
  const budget = openBudget(maxBytes);
  const cache = await openCache({ folder, budget });
  const workspaces = await openKeptWorkspaces({ stateRoot, budget, folders: folderCopies });
  return await serveCache({ cache, workspaces }, socket, log);
}

/** Starts a worker in this process. Must be called on the main thread. Rejects with `WorkerRefused` if the worker cannot run here. */
export async function startWorker(settings: Settings, context: WorkerContext): Promise<Worker> {
  const { log } = context;
  const serviceRoot = settings.RUNYARD_BASE_URL ?? `http://${settings.RUNYARD_HOST}:${settings.RUNYARD_PORT}`;
  const workerName = settings.RUNYARD_WORKER_NAME ?? defaultWorkerName(os.hostname());
  const slots = settings.RUNYARD_WORKER_SLOTS ?? 2 * os.availableParallelism();

  const lock = await waitForDataFolder(path.resolve(settings.RUNYARD_DATA_DIR), context).catch((error: Error) => {
    throw new WorkerRefused(error.message, { cause: error });
  });
  if ('heldBy' in lock) {
    throw new WorkerRefused(
      `the data folder ${settings.RUNYARD_DATA_DIR} is used by ${lock.heldBy}: stop that worker, or set RUNYARD_DATA_DIR to another folder`,
    );
  }
  let supervisors: Supervisors | undefined;
  try {
    const state = await chooseStateRoot(lock.folder);
    log.info({ folder: state.folder, because: state.because }, 'sandboxes live here');
    void removeAbandonedRoots().catch((error: Error) =>
      log.warn({ error: error.message }, 'abandoned state could not be removed'),
    );
    const adoptSeconds = outlives(settings) ? settings.RUNYARD_ADOPT_SECONDS : 0;
    const opened = await openSupervisors(state.folder, supervisorLabel(state.owner), adoptSeconds, log);
    supervisors = opened;
    const live = new Set(
      opened.left
        .filter(({ lives }) => lives)
        .flatMap(({ sandbox, record }) => [sandbox.id, record.supervisor ?? sandbox.id]),
    );
    const left =
      adoptSeconds === 0
        ? []
        : await adoptLeft(settings.RUNYARD_SANDBOX, { state, settings, log }).catch((error: Error) => {
            throw new WorkerRefused(error.message, { cause: error });
          });
    await sweepLeftovers(state, new Set([...live, ...left.map(({ sandbox }) => sandbox.id)]), log);
    const token = openInstanceToken(lock.folder, log);
    const limits = sandboxLimits(settings);
    const cacheBytes = settings.RUNYARD_WORKER_CACHE_MB * 1024 * 1024;
    const cacheFolder = path.join(lock.folder, 'cache');
    if (cacheBytes === 0) for (const each of [cacheFolder, path.join(state.folder, 'kept')]) await removeTree(each);
    const served =
      cacheBytes === 0 ? undefined : await openStore(cacheFolder, cacheBytes, state, opened.cacheSocket, log);
    const backend = await openBackend(settings.RUNYARD_SANDBOX, {
      limits,
      warmSandboxes: settings.RUNYARD_WARM_SANDBOXES,
      harnessDir: settings.RUNYARD_HARNESS_DIR,
      state,
      instanceId: lock.instanceId,
      agentEntry: context.agentEntry ?? defaultAgentEntry,
      serviceRoot,
      cacheSocket: served && opened.cacheSocket,
      supervisors: adoptSeconds > 0 ? opened : undefined,
      docker: settings,
      kubernetes: settings,
      log,
    }).catch((error: Error) => {
      throw new WorkerRefused(error.message, { cause: error });
    });

    const stopTelling =
      backend.waiting &&
      keepWaitingFile(lock.folder, backend.waiting, (error) =>
        log.warn({ error: error.message }, 'doctor cannot see the waiting sandboxes'),
      );

    let settle: (end: { exitCode: 0 | 2 }) => void = () => {};
    const drained = new Promise<{ exitCode: 0 | 2 }>((resolve) => {
      settle = resolve;
    });
    let ending: Promise<void> | undefined;
    let stopping = false;
    let leaving = false;

    const forget = (executionId: string): void => {
      opened.forget(executionId);
      void backend.forget?.(executionId);
    };
    const outbox = createOutbox((confirmed) => {
      for (const { type, data } of confirmed)
        if ((type === 'task_completed' || type === 'task_failed') && data.execution_id !== undefined)
          forget(data.execution_id);
      endWhenIdle();
    });
    const health = await watchHealth({
      folder: state.folder,
      trySandbox: async () => {
        const ids = { executionId: randomUUIDv7(), taskId: randomUUIDv7() };
        const tested = await backend.create(
          { ...ids, limits, isLimited: true, files: [] },
          AbortSignal.timeout(testMs),
        );
        await tested.dispose();
        forget(ids.executionId);
      },
      onChange: () => connection.sayStatus(),
      log,
    });
    const executions = createExecutions({
      backend,
      health,
      slots,
      serviceRoot: backend.agentServiceRoot ?? serviceRoot,
      workerName,
      limits,
      egress: makeEgress(settings),
      harnessDir: settings.RUNYARD_HARNESS_DIR,
      send: (message) => connection.send(message),
      onIdle: () => endWhenIdle(),
      log,
    });
    const level = backend.describe();
    const connection = connect({
      serviceRoot,
      workerName,
      readKey: () => readApiKey(settings),
      keySource: keySource(settings),
      outbox,
      hello: () => ({
        type: 'worker_hello',
        data: {
          worker_id: workerName,
          instance_id: lock.instanceId,
          ...token.proof(),
          slots,
          executions: [...executions.list(), ...unconfirmedEnds()],
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
      onRefused: () => void end(2),
      log,
    });

    const stopAliveFile = keepAliveFile(lock.folder, connection.isOpen);

    // Adopts the executions before the first hello, because the hello lists them.
    executions.adopt([...opened.left, ...left]);

    /** Returns the executions whose end the service has not confirmed yet. For the service, they still run on this worker. */
    const unconfirmedEnds = (): { task_id: string; execution_id: string }[] =>
      outbox
        .kept()
        .flatMap(({ message }) =>
          (message.type === 'task_completed' || message.type === 'task_failed') &&
          message.data.execution_id !== undefined
            ? [{ task_id: message.data.task_id, execution_id: message.data.execution_id }]
            : [],
        );

    const end = (exitCode: 0 | 2): Promise<void> => {
      ending ??= (async () => {
        executions.drain();
        health.close();
        await connection.close();
        stopTelling?.();
        stopAliveFile();
        await backend.close();
        await opened.letGo();
        served?.close();
        await lock.release();
        settle({ exitCode });
      })();
      return ending;
    };

    const endWhenIdle = (): void => {
      if (leaving || !executions.isDraining() || executions.list().length > 0) return;
      if (outbox.kept().length === 0) return void end(0);
      setTimeout(() => void end(0), stopping ? lastWordsStoppingMs : lastWordsMs);
    };

    const drain = (): void => {
      if (executions.isDraining()) return;
      executions.drain();
      backend.drain?.();
      log.info({ executions: executions.list().length }, 'draining: no new executions');
      connection.sayHello();
      endWhenIdle();
    };

    /** Leaves the sandboxes to the next worker of the data folder. */
    const leave = async (): Promise<void> => {
      if (leaving || stopping) return;
      leaving = true;
      executions.drain();
      backend.drain?.();
      log.info({ executions: executions.list().length }, 'leaving: the next worker adopts the sandboxes');
      connection.sayHello();
      // Waits until each claimed execution has a sandbox, so that the next worker finds these sandboxes.
      await Promise.race([executions.settled(), sleep(settleMs)]);
      await Promise.race([outbox.drained(), sleep(lastWordsStoppingMs)]);
      await end(0);
    };

    const stop = async (): Promise<void> => {
      stopping = true;
      drain();
      executions.stopAll();
      endWhenIdle();
      await drained;
    };

    return {
      drain,
      terminate: () => (adoptSeconds > 0 ? void leave() : drain()),
      leave: () => void (adoptSeconds > 0 ? leave() : stop()),
      stop,
      drained,
      instanceId: lock.instanceId,
      stateRoot: state.folder,
    };
  } catch (error) {
    await supervisors?.letGo();
    await lock.release();
    throw error;
  }
}
