import { isAbsolute, join, relative } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { SetupFailure } from '../setup-failure.ts';

/** Returns the folder in which the harness works: the workspace, or the environment's `working_directory` inside the workspace. */
export function workingFolder(workspace: string, task: Pick<AgentTask, 'environment'>): string {
  return join(workspace, task.environment?.config.working_directory ?? '');
}

/** Throws a `SetupFailure` if the folder does not exist, or if it is outside of the workspace because a repository contains a link. */
export async function checkWorkingFolder(workspace: string, task: Pick<AgentTask, 'environment'>): Promise<void> {
  const named = task.environment?.config.working_directory;
  if (named === undefined) return;
  const fail = (why: string) =>
    new SetupFailure(
      `The working_directory ${JSON.stringify(named)} of the environment ${why}. Correct it, or let a repository or a setup command make it.`,
    );
  // Loaded only here, because most runs have no `working_directory` and do not need the module.
  const { realpath, stat } = await import('node:fs/promises');
  const folder = await realpath(workingFolder(workspace, task)).catch(() => undefined);
  if (folder === undefined) throw fail('does not exist after the setup');
  const inside = relative(await realpath(workspace), folder);
  if (inside.startsWith('..') || isAbsolute(inside)) throw fail('leads out of the workspace');
  if (!(await stat(folder)).isDirectory()) throw fail('is not a folder');
}
