import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { HarnessOutcome } from '../acp/outcome.ts';
import { harnessProfile } from '../harness/profile.ts';
import { firstMessage, promptContent } from '../harness/prompt.ts';
import { setupSteps } from '../reporting/setup-steps.ts';
import { prepareWorkspace, setupCommands } from '../workspace/prepare.ts';
import type { TurnRunner } from './turn-runner.ts';
import type { TurnsOptions } from './turns-options.ts';

/**
 * Prepares the workspace, starts the harness and runs the first turn. Throws a `SetupFailure` if the workspace cannot be
 * prepared.
 */
export async function runFirstTurn(
  task: AgentTask,
  options: TurnsOptions,
  runner: TurnRunner,
): Promise<HarnessOutcome> {
  const { client, secrets, workspace, ownFolders, env, stop, reporter, approvals, harness, saver } = options;
  const { name, modelId, capabilities } = harnessProfile(task);
  const step = setupSteps(reporter.emit);
  const early = canStartEarly(task) ? harness.start(task) : undefined;
  early?.catch(() => {});
  const prepared = await prepareWorkspace({
    task,
    client,
    workspace,
    ownFolders,
    env,
    variables: secrets.variablesOf(task),
    step,
    signal: stop.signal,
  });
  const { attachments, restored } = prepared;
  if (prepared.notRestored !== undefined)
    runner.addOpeningNotice('workspace_not_restored', { reason: prepared.notRestored });
  await saver.begin(task, restored);
  const { driver } = await (early ?? harness.start(task));
  // The turn reports the same failure.
  if (capabilities.ownProcess) await step('harness', name, () => driver.initialised).catch(() => {});
  stop.signal.throwIfAborted();
  // Only now, because the decision is about the task, and not about messages in the sandbox of a failed setup.
  approvals.begin(task.agent_config.approval_policy, task.decision);
  return await runner.run(driver, {
    message: firstMessage(task),
    prompt: (loaded) => promptContent(task, attachments, { restored, loaded }),
    attachments,
    onStarted: () => reporter.emit({ type: 'agent_started', harness: name, model_id: modelId }),
    load: restored && task.workspace?.kind === 'archive' ? task.workspace.session_id : undefined,
  });
}

/**
 * Returns true if the harness can start while the workspace is prepared. Setup commands may install the harness, and a restored home
 * has the state of the harness. While git clones, its environment has the run token, which a harness in a process of its own could
 * read.
 */
function canStartEarly(task: AgentTask): boolean {
  if (setupCommands(task).length > 0 || task.workspace !== undefined) return false;
  return task.repositories.length === 0 || !harnessProfile(task).capabilities.ownProcess;
}
