/** Applies the changes of an earlier sandbox to new clones. Only files of the repositories come from the earlier sandbox. */
import { lstat, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { maxSnapshotFileBytes } from '@runyard/contract/limits';
import { runCommand } from '../commands/run-command.ts';
import { scratchIn } from '../handoff/patch.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import type { ServiceClient } from '../service/client.ts';

/** A patch of `git diff`, and the folder of the clone to which it belongs. */
export type StoredPatch = Extract<NonNullable<AgentTask['workspace']>, { kind: 'changes' }>['patches'][number];

interface ApplyOptions {
  readonly client: Pick<ServiceClient, 'download'>;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly step: SetupSteps;
  readonly signal: AbortSignal;
}

/**
 * Applies each patch in the working folder of its clone. Git changes nothing outside of the clone and nothing in `.git`, and if one part of
 * a patch does not fit, it applies no part of this patch. Returns the reasons for the patches that were not applied; undefined if all were
 * applied.
 */
export async function applyPatches(
  patches: readonly StoredPatch[],
  options: ApplyOptions,
): Promise<string | undefined> {
  const { workspace, env, step, signal } = options;
  const scratch = await scratchIn(env.HOME === undefined ? workspace : join(env.HOME, '.cache'));
  const problems: string[] = [];
  try {
    for (const patch of patches) {
      const folder = basename(patch.folder);
      await step('workspace', `changes of ${folder}`, async (result) => {
        const problem = await apply(patch, join(workspace, folder), join(scratch, 'changes.patch'), options);
        if (problem === undefined) return;
        result.name = `changes of ${folder} were not applied: ${problem}`;
        problems.push(result.name);
      });
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  signal.throwIfAborted();
  return problems.length === 0 ? undefined : problems.join('; ');
}

async function apply(
  { path, size_bytes: size }: StoredPatch,
  clone: string,
  file: string,
  { client, env, signal }: ApplyOptions,
): Promise<string | undefined> {
  if (!(await lstat(join(clone, '.git')).catch(() => undefined))?.isDirectory())
    return 'the environment has no such clone';
  try {
    await writeFile(file, await client.download(path, Math.min(size, maxSnapshotFileBytes), { signal }), {
      mode: 0o600,
    });
  } catch (error) {
    signal.throwIfAborted();
    return (error as Error).message;
  }
  const argv = ['git', '-c', 'core.hooksPath=/dev/null', 'apply', '--whitespace=nowarn', '--', file] as const;
  const { exitCode, output } = await runCommand({ argv, cwd: clone, env, signal });
  return exitCode === 0 ? undefined : output.trim();
}
