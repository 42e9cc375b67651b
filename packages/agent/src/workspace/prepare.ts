import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { atBase } from '@runyard/contract/agent/base-commits';
import type { NetworkAccess } from '../egress/forwarder.ts';
import type { GrantedSecrets } from '../granted-secrets/granted-secrets.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import type { ServiceClient } from '../service/client.ts';
import { SetupFailure } from '../setup-failure.ts';
import { archivedFolders, foreignFolders } from '../workspace-archive/archived-folders.ts';
import type { WrittenAttachment } from './attachments.ts';
import type { PreparedOptions, PreparedWorkspace } from './prepared.ts';
import type { StoredPatch } from './stored-changes.ts';
import { checkWorkingFolder } from './working-folder.ts';

type FreshCheck = NonNullable<AgentTask['fresh_check']>;

export interface PrepareOptions {
  task: AgentTask;
  client: ServiceClient;
  workspace: string;
  /** True: the working folder and the home were created for this run. An archive must not be restored into other folders. */
  ownFolders: boolean;
  /** True: processes, network and writable file systems of the sandbox belong to this run alone. */
  isSeparate: boolean;
  env: Readonly<Record<string, string | undefined>>;
  /** `NAME=value` of `env` that marks every process of the run. */
  marker: string;
  network: NetworkAccess;
  /** The variables of `env` that contain the address of the proxy through which programs reach the allowed hosts. */
  proxyVariables: Readonly<Record<string, string>>;
  /** Secrets of the run. The clone of repositories does not get them. */
  secrets: Pick<GrantedSecrets, 'variablesOf' | 'ofSetup'>;
  step: SetupSteps;
  signal: AbortSignal;
}

export interface Prepared {
  /** Attachments of the first prompt. */
  attachments: WrittenAttachment[];
  /** True if workspace and home come from an earlier execution. */
  restored: boolean;
  /** The reason why the workspace was not restored, or has not all stored changes, although the task names an earlier workspace. */
  notRestored?: string;
}

/**
 * Restores the workspace of an earlier execution. If there is no such workspace or the restore fails, clones the repositories and runs the
 * setup commands. A run that begins anew gets its stored changes after
 * the setup. Throws a `SetupFailure` that says which step failed and why.
 */
export async function prepareWorkspace(options: PrepareOptions): Promise<Prepared> {
  const { workspace, fresh_check: check } = options.task;
  if (check !== undefined) return await prepareCheck(check, options);
  if (workspace?.kind === 'archive' && options.ownFolders) await installAgain(options);
  const notRestored = await restore(options);
  const restored = workspace !== undefined && workspace.kind !== 'changes' && notRestored === undefined;
  const attachments = await attach(options, restored);
  if (!restored) await setUp(options);
  const notApplied = workspace?.kind === 'changes' ? await applyChanges(workspace.patches, options) : undefined;
  // Write the skills after the setup, because the worker keeps the result of the setup for later runs, which may have other skills.
  await laySkills(options);
  await checkWorkingFolder(options.workspace, options.task);
  const problem = notRestored ?? notApplied;
  return { attachments, restored, ...(problem === undefined ? {} : { notRestored: problem }) };
}

/** Sets up the base commits of a check, and then applies the changes to check. Throws a `SetupFailure` if anything is missing. */
async function prepareCheck(check: FreshCheck, options: PrepareOptions): Promise<Prepared> {
  const { task } = options;
  if (!options.ownFolders) throw new SetupFailure(foreignFolders);
  if (task.workspace?.kind !== 'changes') throw new SetupFailure('The changes to check are missing.');
  const { applyToBase } = await import('./fresh-check.ts');
  await setUp({ ...options, task: atBase(task, check.base_commits) });
  await applyToBase(check, task.workspace.patches, options);
  await checkWorkingFolder(options.workspace, task);
  return { attachments: [], restored: false };
}

/**
 * Runs the setup of an environment with its own Debian, and then empties the folders for the archive. The reason: an archive does not
 * contain what the setup has installed.
 */
async function installAgain(options: PrepareOptions): Promise<void> {
  const { task, workspace, env } = options;
  if (task.environment?.config.system === undefined) return;
  await setUp({ ...options, task: { ...task, attachments: [] } });
  const { clearFolder } = await import('../workspace-archive/clear-folder.ts');
  for (const { path } of archivedFolders(workspace, env.HOME)) await clearFolder(path);
}

/** Restores the workspace of an earlier execution. If this is not possible, returns the reason. */
async function restore(options: PrepareOptions): Promise<string | undefined> {
  const { task, client, workspace, ownFolders, env, step, signal } = options;
  switch (task.workspace?.kind) {
    case 'missing':
      return task.workspace.reason ?? 'none was kept';
    case 'archive': {
      if (!ownFolders) return foreignFolders;
      const { restoreWorkspace } = await import('../workspace-archive/restore.ts');
      const folders = archivedFolders(workspace, env.HOME);
      return await restoreWorkspace(task.workspace, { connection: client.connection, folders, env, step, signal });
    }
    default:
      return undefined;
  }
}

/**
 * Writes the attachments and returns the attachments of the first prompt. A restored workspace already has the attachments of earlier
 * prompts.
 */
async function attach(
  { task, client, workspace, step, signal }: PrepareOptions,
  restored: boolean,
): Promise<WrittenAttachment[]> {
  const files = task.attachments.filter(({ earlier }) => !restored || earlier !== true);
  const count = files.length;
  if (count === 0) return [];
  const { writeAttachments } = await import('./attachments.ts');
  const written = await step('attachments', `${count} ${count === 1 ? 'file' : 'files'}`, () =>
    writeAttachments(files, { client, workspace, signal }),
  );
  return written.filter((_, index) => files[index]?.earlier !== true);
}

/** Write the skills even into a restored home folder, because an archive omits some folders. */
async function laySkills({ task, env, step }: PrepareOptions): Promise<void> {
  const { skills = [] } = task;
  if (skills.length === 0) return;
  const { writeSkills } = await import('./skills.ts');
  await step('skill', skills.map(({ name }) => name).join(', '), () => writeSkills(skills, env.HOME));
}

/** Applies the stored changes to the new clones. If this is not possible, returns the reason. */
async function applyChanges(patches: readonly StoredPatch[], options: PrepareOptions): Promise<string | undefined> {
  if (patches.length === 0) return 'no changes of repositories were stored';
  if (!options.ownFolders) return foreignFolders;
  const { applyPatches } = await import('./stored-changes.ts');
  return await applyPatches(patches, options);
}

async function setUp(options: PrepareOptions): Promise<void> {
  const { task, client, workspace, ownFolders, env, network, secrets, step, signal } = options;
  const commands = setupCommands(task);
  if (task.repositories.length === 0 && commands.length === 0) return;
  const { workerCache } = await import('./worker-cache.ts');
  const cache = ownFolders ? workerCache(client.connection) : undefined;
  const opened = cache && (await openPrepared({ ...options, cache }));
  const prepared = typeof opened === 'object' ? opened : undefined;
  if (await prepared?.restore()) return;
  let areExpected = true;
  if (task.repositories.length > 0) {
    const { cloneRepositories } = await import('./repositories.ts');
    const refresh = task.agent_config.refresh_environment;
    areExpected = await cloneRepositories(task.repositories, { workspace, env, step, signal, cache, refresh });
  }
  if (commands.length > 0) {
    const { runSetupCommands } = await import('./setup-commands.ts');
    const check = await watchSetupSecrets(options);
    const ofSetup = secrets.ofSetup(task);
    const variables = { ...env, ...secrets.variablesOf(task), ...ofSetup.variables };
    try {
      await runSetupCommands(commands, { workspace, network, env: variables, step, signal });
    } finally {
      ofSetup.remove();
    }
    await check();
  }
  await prepared?.keep(areExpected);
  if (typeof opened === 'string') await step('workspace', `not kept for later runs: ${opened}`, async () => {});
}

/** Returns the check after the setup commands. Without secrets of the setup, the check does nothing. */
async function watchSetupSecrets(options: PrepareOptions): Promise<() => Promise<void>> {
  const { task, client, workspace, env } = options;
  const { setup_secrets: secrets = [] } = task;
  if (secrets.length === 0) return async () => {};
  const { refuseServicesOfPod } = await import('../services/container-service.ts');
  refuseServicesOfPod(task.environment?.config.services ?? [], client.connection);
  const { watchSetup } = await import('./setup-secrets.ts');
  return watchSetup({ ...options, secrets, folders: [workspace, env.HOME ?? workspace] });
}

/** Returns the prepared workspace of the task, or the reason why there is none; undefined if the service gives neither. */
async function openPrepared(options: PreparedOptions): Promise<PreparedWorkspace | string | undefined> {
  if (options.task.prepared_workspace === undefined) return options.task.not_prepared;
  const { preparedWorkspace } = await import('./prepared.ts');
  return await preparedWorkspace(options);
}

export function setupCommands(task: AgentTask): readonly string[] {
  return task.environment?.config.setup_commands ?? [];
}
