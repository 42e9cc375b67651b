import { access, constants, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { isVariableName } from '@runyard/contract/wire/variable-names';
import { backoffMs, delay } from '@runyard/system/backoff';
import { isAnyMarked } from '../commands/processes.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import { SetupFailure } from '../setup-failure.ts';
import { archivedFolders } from '../workspace-archive/archived-folders.ts';
import { clearFolder } from '../workspace-archive/clear-folder.ts';
import type { WorkerCache } from './worker-cache.ts';

export interface PreparedOptions {
  readonly task: AgentTask;
  readonly cache: WorkerCache;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Variables of `env` that the agent set for the allowed hosts of the environment. */
  readonly proxyVariables: Readonly<Record<string, string>>;
  readonly step: SetupSteps;
  readonly signal: AbortSignal;
}

/** The result of an earlier run's setup that was the same as the setup of this task. The worker may have stored it. */
export interface PreparedWorkspace {
  /** Fills the workspace and the home. If there is no usable prepared workspace, returns false and leaves both folders empty. */
  restore(): Promise<boolean>;
  /**
   * Stores the workspace and the home for later runs, unless something other than the setup has changed them. Rejects only if the signal
   * aborts.
   */
  keep(hasExpectedCommits: boolean): Promise<void>;
}

/**
 * Caches in /tmp that programs create again if they are missing: those of Node's compiler, v8-compile-cache, tsx, jiti and Java, and lock
 * files of uv.
 */
const cacheInTemporary = /^(?:node-compile-cache|v8-compile-cache-\d+|tsx-\d+|jiti|hsperfdata_\w+|uv-[0-9a-f]+\.lock)$/;
const maxNamedFiles = 3;
/** The answer of a worker that cannot copy the folders of this sandbox. */
const noCopies = 501;

/** Variables that every sandbox has, in addition to the variables that no environment or secret can set. */
const ofSandbox = new Set(['PATH', 'USER', 'LANG', 'TERM', 'PWD', 'SHLVL', '_']);

/**
 * Returns the prepared workspace of a task, or the reason why the result of the setup must not be reused. The result of the setup may be
 * reused only if it depends on nothing but the repositories, the setup commands, and the variables and secrets of the setup. Existing
 * files, attachments and a variable of unknown origin, which may be a secret of this run, prevent the reuse.
 */
export async function preparedWorkspace(options: PreparedOptions): Promise<PreparedWorkspace | string> {
  const { task, cache, workspace, env, proxyVariables, step, signal } = options;
  const name = task.prepared_workspace?.name;
  // Include the whole home, because package managers store installed packages in folders that the archive of a run omits.
  const folders = archivedFolders(workspace, env.HOME).map(({ path }) => ({ path, excluded: [] }));
  if (task.attachments.length > 0) return 'the run has attachments';
  if (name === undefined || folders.length !== 2) return 'the home folder is inside the workspace';
  const unknown = findUnknownVariable(task, env, proxyVariables);
  if (unknown !== undefined) return `the sandbox has the variable ${unknown}, which is not from the environment`;
  for (const { path } of folders) if ((await readdir(path)).length > 0) return `${path} had files before the setup`;
  const temporaryFiles = await readdir(tmpdir());

  const reasonAgainst = async (hasExpectedCommits: boolean): Promise<string | undefined> => {
    if (!hasExpectedCommits) return 'a repository changed while it was cloned';
    if (isAnyMarked(`RUNYARD_AGENT_SOCKET=${env.RUNYARD_AGENT_SOCKET}`)) return 'a process of the setup still runs';
    const added = (await readdir(tmpdir())).filter(
      (each) => !temporaryFiles.includes(each) && !cacheInTemporary.test(each),
    );
    if (added.length === 0) return undefined;
    const named = added.slice(0, maxNamedFiles).join(', ') + (added.length > maxNamedFiles ? ', …' : '');
    return `the setup left files in /tmp, which cannot be kept: ${named}`;
  };

  const megabytes = (bytes = 0): string => `${(bytes / 1e6).toFixed(1)} MB`;
  const empty = async (): Promise<void> => {
    signal.throwIfAborted();
    for (const { path } of folders) await clearFolder(path);
  };

  /** Lets the worker fill the folders. Returns undefined if the worker only stores archives. */
  const useCopy = async (): Promise<boolean | undefined> => {
    const found = await cache.workspace('find', name, signal).catch(() => undefined);
    signal.throwIfAborted();
    if (found === undefined || found.status === noCopies) return undefined;
    if (found.status !== 200) return false;
    const size = megabytes(found.bytes);
    return await step('workspace', `copying the prepared workspace of an earlier run (${size})`, async (result) => {
      const used = await cache.workspace('use', name, signal).catch(() => undefined);
      if (used?.status === 200) {
        // The path of the working folder now leads to another folder.
        if (process.cwd() === workspace) process.chdir(workspace);
        result.name = `reused as an earlier run prepared it (${size})`;
        return true;
      }
      await empty();
      result.name = 'the prepared workspace of an earlier run could not be used';
      // With another status than 404, the worker may have replaced a part of the programs.
      if (used?.status !== 404 && task.environment?.config.system !== undefined)
        throw new SetupFailure(
          'The worker could not copy the Debian that an earlier run has prepared. The log of the worker has the reason. Run again. If it fails again, run with refresh_environment.',
        );
      return false;
    });
  };

  const unpackArchive = async (): Promise<boolean> => {
    const cached = await cache.get(name, signal).catch(() => undefined);
    signal.throwIfAborted();
    if (cached === undefined) return false;
    const size = megabytes(cached.bytes);
    try {
      await step('workspace', `unpacking the prepared workspace of an earlier run (${size})`, async (result) => {
        const { unpackFolders } = await import('../workspace-archive/unpack.ts');
        await unpackFolders(cached.content, folders, { sha256: cached.sha256, env, signal });
        result.name = `reused as an earlier run prepared it (${size})`;
      });
      return true;
    } catch {
      await empty();
      return false;
    } finally {
      cached.content.destroy();
    }
  };

  /** Stores the folders. Returns the reason if they could not be stored. */
  const store = async (): Promise<string | undefined> => {
    const { status, reason } = await cache.workspace('keep', name, signal).catch(() => ({ status: 503, reason: '' }));
    if (status === 200) return undefined;
    if (status === 409) return 'a file of the workspace or home is open for writing';
    if (status === 413) return reason;
    if (status !== noCopies) {
      await untilWritable(workspace, signal);
      return 'the worker could not copy the workspace';
    }
    const { packFolders } = await import('../workspace-archive/pack.ts');
    // No limit is set here, because the worker limits the size.
    const archive = packFolders(folders, { env, maxBytes: Number.MAX_SAFE_INTEGER, signal });
    if (await cache.put(name, archive, signal)) return undefined;
    return 'the worker has no room for it (RUNYARD_WORKER_CACHE_MB)';
  };

  return {
    async restore() {
      if (task.agent_config.refresh_environment) return false;
      return (await useCopy()) ?? (await unpackArchive());
    },

    async keep(hasExpectedCommits) {
      await step('workspace', 'keeping a copy for later runs in this environment', async (result) => {
        const against = (await reasonAgainst(hasExpectedCommits)) ?? (await store());
        signal.throwIfAborted();
        result.name =
          against === undefined ? 'kept for later runs in this environment' : `not kept for later runs: ${against}`;
      });
    },
  };
}

/**
 * Waits until the folder is writable. If the worker was killed while it copied the disk, the copy continues, and the disk is read-only
 * until the copy has ended.
 */
async function untilWritable(folder: string, signal: AbortSignal): Promise<void> {
  const isReadOnly = () =>
    access(folder, constants.W_OK).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === 'EROFS',
    );
  for (let attempt = 1; await isReadOnly(); attempt++)
    await delay(backoffMs({ firstMs: 50, longestMs: 1_000 }, attempt), signal);
}

/** Returns the name of a variable of unknown origin; undefined if there is none. */
function findUnknownVariable(
  { environment }: AgentTask,
  env: Readonly<Record<string, string | undefined>>,
  ofAgent: Readonly<Record<string, string>>,
): string | undefined {
  const own = environment?.config.variables ?? {};
  return Object.keys(env).find((name) => {
    const value = env[name];
    if (value === undefined || !isVariableName(name) || ofSandbox.has(name)) return false;
    return own[name] !== value && ofAgent[name] !== value;
  });
}
