import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { BaseCommit } from '@runyard/contract/runs/agent-events';
import { isVariableName } from '@runyard/contract/wire/variable-names';
import type { HarnessOutcome } from '../acp/outcome.ts';
import { policyOfTask } from '../approvals/run-policy.ts';
import { harnessProfile } from '../harness/profile.ts';
import { firstMessage, promptContent } from '../harness/prompt.ts';
import { setupSteps } from '../reporting/setup-steps.ts';
import { SetupFailure } from '../setup-failure.ts';
import { gitAuthorVariables, nameGitAuthor } from '../workspace/git-author.ts';
import { prepareWorkspace, setupCommands } from '../workspace/prepare.ts';
import { workingFolder } from '../workspace/working-folder.ts';
import type { TurnRunner } from './turn-runner.ts';
import type { TurnsOptions, TurnsReports, TurnsSandbox } from './turns-options.ts';

/**
 * Prepares the workspace, starts the harness and runs the first turn. Throws a `SetupFailure` if the workspace cannot be
 * prepared.
 */
export async function runFirstTurn(
  task: AgentTask,
  options: TurnsOptions,
  runner: TurnRunner,
): Promise<HarnessOutcome> {
  const { client, workspace, isSeparate, env, stop, reporter, approvals, harness } = options;
  const { name, modelId, capabilities } = harnessProfile(task);
  const step = setupSteps(reporter.emit);
  await addVariables(task, options);
  /** Starts the harness with the author that the setup has left. */
  const startHarness = async (started: AgentTask) => {
    if (capabilities.ownProcess && task.author !== undefined) options.addToEnv(await authorVariables(options, task));
    return await harness.start(started);
  };
  const early = canStartEarly(task) ? startHarness(task) : undefined;
  early?.catch(() => {});
  const { attachments, restored, notRestored } = await prepareWorkspace({
    ...options,
    task,
    step,
    signal: stop.signal,
  });
  noteLoss(task, { restored, notRestored }, runner);
  const started = { isSeparate, workspace, connection: client.connection, step, signal: stop.signal };
  await options.services.start(task.environment?.config.services ?? [], env, started);
  await startServers(task, options, runner, step);
  // If attachments arrived after the earlier archive, this archive does not count as complete. Otherwise the attachments would be missing
  // in the next execution.
  const isOwn = task.workspace?.kind !== 'archive' || task.workspace.run_id === undefined;
  await options.saver.begin(task, { restored, isSaved: restored && isOwn && attachments.length === 0 });
  await options.beginCheckpoints(task);
  const { driver } = await (early ?? startHarness(restored ? task : withNothingDone(task)));
  // Ignore a failure here, because the turn reports the same failure.
  if (capabilities.ownProcess) await step('harness', name, () => driver.initialised).catch(() => {});
  stop.signal.throwIfAborted();
  // Pass the decision only after the setup has succeeded. The decision is about the task, and must not apply to messages that a person
  // sends after a failed setup.
  options.position.mode = task.mode;
  approvals.begin(policyOfTask(task, workspace), task.decision);
  await (await options.openChecks(task))?.begin();
  const commits = restored ? undefined : await clonedCommits(task, workspace);
  return await runner.run(driver, {
    message: firstMessage(task),
    mode: task.mode,
    prompt: (loaded) => promptContent(task, attachments, { restored, loaded }),
    attachments,
    onStarted: () => reporter.emit({ type: 'agent_started', harness: name, model_id: modelId, ...commits }),
    load: restored && task.workspace?.kind === 'archive' ? task.workspace.session_id : undefined,
  });
}

/**
 * Prepares the sandbox of a check: clones the base commits, runs the setup and applies the changes that the check runs on. No harness
 * starts. The checks of the task run after it, when the service has stored that the setup is over: from then on, the sandbox has no network.
 */
export async function runFreshCheckTurn(task: AgentTask, options: TurnsOptions): Promise<HarnessOutcome> {
  const { client, workspace, isSeparate, network, env, stop, reporter } = options;
  const step = setupSteps(reporter.emit);
  try {
    if (network === 'open' || !isSeparate)
      throw new SetupFailure('A check in a fresh sandbox needs a sandbox without a network, and this worker has none.');
    await addVariables(task, options);
    await prepareWorkspace({ ...options, task, step, signal: stop.signal });
    const started = { isSeparate, workspace, connection: client.connection, step, signal: stop.signal };
    await options.services.start(task.environment?.config.services ?? [], env, started);
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error;
    return { kind: 'failed', code: 'checks_failed', summary: '', message: error.message };
  }
  await (await options.openChecks(task))?.begin();
  const { name, modelId } = harnessProfile(task);
  reporter.emit({ type: 'agent_started', harness: name, model_id: modelId });
  await reporter.flush();
  return { kind: 'succeeded', summary: '' };
}

/** Returns the member of `agent_started` with the commits of the new clones. */
async function clonedCommits(task: AgentTask, workspace: string): Promise<{ base_commits?: BaseCommit[] }> {
  if (task.repositories.length === 0) return {};
  const { listBaseCommits, readBaseCommits } = await import('../checks/check-diff.ts');
  return { base_commits: listBaseCommits(await readBaseCommits(workspace)) };
}

/** Adds the variables of the environment, of the git author and of the proxy for repositories. */
async function addVariables(
  task: AgentTask,
  { client, env, proxyVariables, reporting, addToEnv }: TurnsSandbox & Pick<TurnsReports, 'client' | 'reporting'>,
): Promise<void> {
  addToEnv(withProxyForJava(variablesOf(task), proxyVariables));
  if (task.author !== undefined && env.GIT_CONFIG_SYSTEM === undefined && env.RUNYARD_AGENT_SOCKET !== undefined)
    addToEnv(nameGitAuthor(task.author, env.RUNYARD_AGENT_SOCKET));
  if (task.repositories.length === 0) return;
  const { startGitProxy } = await import('../workspace/git-proxy.ts');
  const { repositories } = task;
  addToEnv(await startGitProxy({ connection: client.connection, repositories, signal: reporting }));
}

/** Lets the first turn begin with notices about files that an earlier sandbox lost. */
function noteLoss(
  { loss }: AgentTask,
  { restored, notRestored }: { readonly restored: boolean; readonly notRestored?: string | undefined },
  runner: TurnRunner,
): void {
  if (notRestored !== undefined) runner.addOpeningNotice('workspace_not_restored', { reason: notRestored });
  if (loss !== undefined)
    runner.addOpeningNotice('machine_lost', {
      reason: loss.message,
      ...(restored && loss.kept_at !== undefined ? { files_of: loss.kept_at } : { files: 'lost' }),
    });
}

/** Starts the MCP servers of the task. The first turn begins with notices about servers and tools that the harness does not get. */
async function startServers(
  task: AgentTask,
  { mcp, stop }: Pick<TurnsOptions, 'mcp' | 'stop'>,
  runner: TurnRunner,
  step: ReturnType<typeof setupSteps>,
): Promise<void> {
  const { name, capabilities } = harnessProfile(task);
  const { mcp_servers: servers = [] } = task;
  if (capabilities.mcpServers === 'unused') {
    const reason = `${capabilities.ownProcess ? `the harness ${name}` : 'a runbook'} uses no MCP servers`;
    for (const { name } of servers) runner.addOpeningNotice('mcp_server_skipped', { name, reason });
  } else await mcp.start(servers, { use: capabilities.mcpServers, step, signal: stop.signal });
  for (const server of mcp.leftOut) runner.addOpeningNotice('mcp_tools_left_out', server);
}

/** Returns the variables of the git author for the working directory and all repositories of the workspace. */
async function authorVariables(
  { workspace, env, stop }: Pick<TurnsOptions, 'workspace' | 'env' | 'stop'>,
  task: AgentTask,
): Promise<Record<string, string>> {
  const { gitRepositories } = await import('../handoff/git-repositories.ts');
  const folders = new Set([workingFolder(workspace, task), ...(await gitRepositories(workspace))]);
  return await gitAuthorVariables([...folders], { env, signal: stop.signal });
}

/**
 * If the run has lost its machine, returns the task with the number of finished runbook commands set to 0, because the files of the
 * checkpoint were not restored. Returns every other task unchanged.
 */
function withNothingDone(task: AgentTask): AgentTask {
  return task.loss === undefined ? task : { ...task, loss: { ...task.loss, done_blocks: 0 } };
}

/**
 * Returns the valid variables of the environment. An environment that was stored before names were checked may contain invalid names.
 */
function variablesOf({ environment }: AgentTask): Record<string, string> {
  const entries = Object.entries(environment?.config.variables ?? {});
  return Object.fromEntries(entries.filter(([name, value]) => isVariableName(name) && typeof value === 'string'));
}

/** Adds the proxy's options for Java to the options of the environment. Otherwise the environment's options would replace the proxy's. */
function withProxyForJava(
  own: Readonly<Record<string, string>>,
  { JAVA_TOOL_OPTIONS: ofProxy }: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const { JAVA_TOOL_OPTIONS: given } = own;
  return given === undefined || ofProxy === undefined ? own : { ...own, JAVA_TOOL_OPTIONS: `${ofProxy} ${given}` };
}

/**
 * Returns true if the harness can start while the workspace is still being prepared. The harness must wait in four cases: setup
 * commands may install the harness, a restored home contains the state of the harness, the setup may create the working directory, and the
 * agent begins only when all services are ready.
 */
function canStartEarly(task: AgentTask): boolean {
  if (setupCommands(task).length > 0 || task.workspace !== undefined) return false;
  const { working_directory: folder, services = [] } = task.environment?.config ?? {};
  if (folder !== undefined || services.length > 0) return false;
  // A harness in a separate process must also wait for repositories and skills, because it reads their files when it starts.
  return (task.repositories.length === 0 && task.skills === undefined) || !harnessProfile(task).capabilities.ownProcess;
}
