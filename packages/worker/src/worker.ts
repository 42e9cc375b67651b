import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Logger } from 'pino';
import { adoptLeft, openBackend } from './backends/backends.ts';
import { sweepLeftovers } from './backends/sweep.ts';
import { openBudget } from './cache/budget.ts';
import { openCache } from './cache/cache.ts';
import { openKeptWorkspaces } from './cache/kept-workspaces.ts';
import { serveCache } from './cache/serve.ts';
import type { AdoptableSandbox } from './sandboxes/backend-kind.ts';
import { folderCopies } from './sandboxes/bubblewrap/copy-folders.ts';
import { sandboxLimits } from './sandboxes/limits.ts';
import { supervisorLabel } from './sandboxes/markers.ts';
import { type DataFolderLock, waitForDataFolder } from './state/data-folder-lock.ts';
import { removeTree } from './state/remove-tree.ts';
import { chooseStateRoot, removeAbandonedRoots, type StateRoot } from './state/state-root.ts';
import { openSupervisors, type Supervisors } from './supervisor-client/supervisors.ts';
import { type WorkerParts, type WorkerPlan, work } from './work.ts';

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

/** Starts a worker in this process. Must be called on the main thread. Rejects with `WorkerRefused` if the worker cannot run here. */
export async function startWorker(settings: Settings, context: WorkerContext): Promise<Worker> {
  const { log } = context;
  const plan = planOf(settings);
  const lock = await takeDataFolder(settings, context);
  let supervisors: Supervisors | undefined;
  try {
    const state = await findState(lock, log);
    const opened = await openSupervisors(state.folder, supervisorLabel(state.owner), plan.adoptSeconds, log);
    supervisors = opened;
    const left = await adoptSandboxes(plan, state, opened, log);
    const store = await openStore(plan, lock, state, opened.cacheSocket, log);
    const backend = await openBackend(settings.RUNYARD_SANDBOX, {
      limits: plan.limits,
      warmSandboxes: settings.RUNYARD_WARM_SANDBOXES,
      harnessDir: settings.RUNYARD_HARNESS_DIR,
      state,
      instanceId: lock.instanceId,
      agentEntry: context.agentEntry ?? defaultAgentEntry,
      serviceRoot: plan.serviceRoot,
      cacheSocket: store && opened.cacheSocket,
      supervisors: plan.adoptSeconds > 0 ? opened : undefined,
      docker: settings,
      kubernetes: settings,
      log,
    }).catch(refuse);
    const parts: WorkerParts = {
      lock,
      stateRoot: state.folder,
      left,
      backend,
      forget(executionId) {
        opened.forget(executionId);
        void backend.forget?.(executionId);
      },
      async close() {
        await opened.letGo();
        store?.close();
        await lock.release();
      },
    };
    const { drain, leave, stop, drained } = await work(plan, parts, log);
    return {
      drain,
      terminate: () => (plan.adoptSeconds > 0 ? void leave() : drain()),
      leave: () => void (plan.adoptSeconds > 0 ? leave() : stop()),
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

const planOf = (settings: Settings): WorkerPlan => ({
  settings,
  serviceRoot: settings.RUNYARD_BASE_URL ?? `http://${settings.RUNYARD_HOST}:${settings.RUNYARD_PORT}`,
  workerName: settings.RUNYARD_WORKER_NAME ?? defaultWorkerName(os.hostname()),
  slots: settings.RUNYARD_WORKER_SLOTS ?? 2 * os.availableParallelism(),
  limits: sandboxLimits(settings),
  // Without sandboxes, agents end with the worker.
  adoptSeconds: settings.RUNYARD_SANDBOX === 'none' ? 0 : settings.RUNYARD_ADOPT_SECONDS,
});

const refuse = (error: Error): never => {
  throw new WorkerRefused(error.message, { cause: error });
};

/** Takes the lock of the data folder. Waits at most `lockPatienceMs` if another worker uses the folder. */
async function takeDataFolder(settings: Settings, { log, lockPatienceMs = 0 }: WorkerContext): Promise<DataFolderLock> {
  const onWait = (holder: string) => log.info({ holder }, 'another worker uses the data folder: waiting for its end');
  const lock = await waitForDataFolder(settings.RUNYARD_DATA_DIR, lockPatienceMs, onWait).catch(refuse);
  if ('heldBy' in lock)
    throw new WorkerRefused(
      `the data folder ${settings.RUNYARD_DATA_DIR} is used by ${lock.heldBy}: stop that worker, or set RUNYARD_DATA_DIR to another folder`,
    );
  return lock;
}

/** Finds the folder for the sandboxes. Begins to remove the folders of data folders that no longer exist. */
async function findState(lock: DataFolderLock, log: Logger): Promise<StateRoot> {
  const state = await chooseStateRoot(lock.folder);
  log.info({ folder: state.folder, because: state.because }, 'sandboxes live here');
  void removeAbandonedRoots().catch((error: Error) =>
    log.warn({ error: error.message }, 'abandoned state could not be removed'),
  );
  return state;
}

/** Returns the sandboxes that earlier workers left and this worker continues. Removes everything else that these workers left. */
async function adoptSandboxes(
  { settings, adoptSeconds }: WorkerPlan,
  state: StateRoot,
  { left }: Supervisors,
  log: Logger,
): Promise<readonly AdoptableSandbox[]> {
  const live = left
    .filter(({ lives }) => lives)
    .flatMap(({ sandbox, record }) => [sandbox.id, record.supervisor ?? sandbox.id]);
  const others =
    adoptSeconds === 0 ? [] : await adoptLeft(settings.RUNYARD_SANDBOX, { state, settings, log }).catch(refuse);
  await sweepLeftovers(state, new Set([...live, ...others.map(({ sandbox }) => sandbox.id)]), log);
  return [...left, ...others];
}

/**
 * Opens and serves the cache, which contains data that runs leave to later runs. Removes the cache and returns undefined if the settings
 * allow no cache.
 */
async function openStore(
  { settings }: WorkerPlan,
  lock: DataFolderLock,
  { folder: stateRoot }: StateRoot,
  socket: string,
  log: Logger,
) {
  const folder = path.join(lock.folder, 'cache');
  if (settings.RUNYARD_WORKER_CACHE_MB === 0) {
    for (const each of [folder, path.join(stateRoot, 'kept')]) await removeTree(each);
    return undefined;
  }
  const budget = openBudget(settings.RUNYARD_WORKER_CACHE_MB * 1024 * 1024);
  const cache = await openCache({ folder, budget });
  const workspaces = await openKeptWorkspaces({ stateRoot, budget, folders: folderCopies });
  return await serveCache({ cache, workspaces }, socket, log);
}
