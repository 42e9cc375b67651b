import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { ServiceClient } from '../service/client.ts';
import type { WrittenAttachment } from './attachments.ts';
import type { SetupSteps } from './setup-steps.ts';

export interface PrepareOptions {
  task: AgentTask;
  client: ServiceClient;
  workspace: string;
  env: Readonly<Record<string, string | undefined>>;
  step: SetupSteps;
  signal: AbortSignal;
}

/** Attachments; gives those of the first prompt. */
async function attach({ task, client, workspace, step, signal }: PrepareOptions): Promise<WrittenAttachment[]> {
  if (task.attachments.length === 0) return [];
  const { writeAttachments } = await import('./attachments.ts');
  const count = task.attachments.length;
  const written = await step('attachments', `${count} ${count === 1 ? 'file' : 'files'}`, () =>
    writeAttachments(task.attachments, { client, workspace, signal }),
  );
  return written.filter((_, index) => task.attachments[index]?.earlier !== true);
}

/** Attachments, clones, setup commands, in this order. Throws a SetupFailure that says which step failed and why. */
export async function prepareWorkspace(options: PrepareOptions): Promise<WrittenAttachment[]> {
  const { task, client, workspace, env, step, signal } = options;
  const attachments = await attach(options);
  if (task.repositories.length > 0) {
    const { cloneRepositories } = await import('./repositories.ts');
    await cloneRepositories(task.repositories, { connection: client.connection, workspace, env, step, signal });
  }
  const commands = setupCommands(task);
  if (commands.length > 0) {
    const { runSetupCommands } = await import('./setup-commands.ts');
    await runSetupCommands(commands, { workspace, env, step, signal });
  }
  return attachments;
}

export function setupCommands(task: AgentTask): readonly string[] {
  return task.environment?.config.setup_commands ?? [];
}
