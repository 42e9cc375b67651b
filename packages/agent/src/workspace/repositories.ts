import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent-protocol';
import { backoffMs, delay } from '@runyard/contract/backoff';
import { maxSetupOutputBytes } from '@runyard/contract/limits';
import { lastPart } from '@runyard/contract/shorten';
import { runCommand } from '../commands/run-command.ts';
import { baseRef } from '../handoff/git-repositories.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import { SetupFailure } from '../setup-failure.ts';
import { publicUrl } from './git-proxy.ts';

export interface CloneOptions {
  workspace: string;
  /** With the variables of the git proxy. */
  env: Readonly<Record<string, string | undefined>>;
  step: SetupSteps;
  signal: AbortSignal;
  tries?: number;
  firstRetryMs?: number;
}

/** Messages of git for failures that may pass: the request itself was correct. */
const temporaryFailure =
  /Could not resolve|Connection refused|Connection reset|timed out|early EOF|RPC failed|unexpected disconnect|error: (?:408|429|5\d\d)|Failed to connect/i;

/**
 * Git settings that disarm a hostile repository during its clone: submodules are not fetched, hooks are not run, and links of the file system
 * are only made below the clone. Filters such as LFS are only run where the machine configures them.
 */
const harmless = [
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'http.followRedirects=false',
  '-c',
  'credential.helper=',
  '-c',
  'submodule.recurse=false',
];

/** Clones the run's repositories into folders of the workspace, through the gateway of the service, which has the credential. */
export async function cloneRepositories(repositories: AgentTask['repositories'], options: CloneOptions): Promise<void> {
  const folders = folderNames(repositories);
  for (const [index, repository] of repositories.entries()) {
    await clone(repository, folders[index] ?? repository.repo, options);
  }
}

/** Returns a folder for each repository: its name, or `owner-repo` if the name is taken. */
function folderNames(repositories: AgentTask['repositories']): string[] {
  const lower = repositories.map(({ repo }) => repo.toLowerCase());
  return repositories.map(({ owner, repo }, index) =>
    lower.indexOf(repo.toLowerCase()) !== index || repo.toLowerCase() === 'attachments' ? `${owner}-${repo}` : repo,
  );
}

async function clone(
  { owner, repo }: AgentTask['repositories'][number],
  folder: string,
  options: CloneOptions,
): Promise<void> {
  const { workspace, signal, tries = 3, firstRetryMs = 1_000 } = options;
  await options.step('clone', `${owner}/${repo}`, async (result) => {
    const target = join(workspace, folder);
    for (let attempt = 1; ; attempt++) {
      const cloned = await runCommand({
        argv: [
          'git',
          ...harmless,
          'clone',
          '--quiet',
          '--depth',
          '1',
          '--no-tags',
          '--',
          publicUrl({ owner, repo }),
          target,
        ],
        cwd: workspace,
        env: { ...options.env, GIT_CONFIG_NOSYSTEM: '1', GIT_ALLOW_PROTOCOL: 'http:https', GIT_LFS_SKIP_SMUDGE: '1' },
        signal,
      });
      signal.throwIfAborted();
      result.exit_code = cloned.exitCode;
      if (cloned.exitCode === 0) return await markBase(target, options);
      const output = lastPart(cloned.output, maxSetupOutputBytes);
      if (attempt < tries && temporaryFailure.test(output)) {
        await rm(target, { recursive: true, force: true });
        await delay(backoffMs({ firstMs: firstRetryMs, longestMs: 10_000 }, attempt), signal);
        continue;
      }
      result.output_tail = output;
      throw new SetupFailure(
        `Cloning ${owner}/${repo} failed: git exited with code ${cloned.exitCode} after ${attempt} ${attempt === 1 ? 'try' : 'tries'}.\n${output.trim()}\nCheck the repository in the environment's github_repos, and the code host in RUNYARD_CODE_HOST_URL of the service.`,
      );
    }
  });
}

/** Marks the cloned commit with a ref. The patch of the run is made against it, also after branches have moved. */
async function markBase(target: string, { env, signal }: CloneOptions): Promise<void> {
  await runCommand({ argv: ['git', 'update-ref', baseRef, 'HEAD'], cwd: target, env, signal });
}
