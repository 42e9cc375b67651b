import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { folderNames } from '@runyard/contract/agent/base-commits';
import { maxSetupOutputBytes } from '@runyard/contract/limits';
import { lastPart } from '@runyard/contract/wire/shorten';
import { backoffMs, delay } from '@runyard/system/backoff';
import { runCommand } from '../commands/run-command.ts';
import { baseRef } from '../handoff/git-repositories.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import { SetupFailure } from '../setup-failure.ts';
import { publicUrl } from './git-proxy.ts';
import { type AfterClone, fetchLfsFiles } from './lfs.ts';
import { cloneFromMirror, keepMirror, type MirrorOptions, type MirrorOutcome } from './mirror.ts';
import { cloneSubmodules } from './submodules.ts';
import type { WorkerCache } from './worker-cache.ts';

export interface CloneOptions {
  workspace: string;
  /** The environment of git, with the variables of the git proxy. */
  env: Readonly<Record<string, string | undefined>>;
  step: SetupSteps;
  signal: AbortSignal;
  /** Absent if there are no mirrors. */
  cache?: WorkerCache | undefined;
  /** True: existing mirrors are not used, but new mirrors replace them. */
  refresh?: boolean | undefined;
  tries?: number;
  firstRetryMs?: number;
}

/** Messages of git for failures that may be temporary, because the request itself was correct. */
const temporaryFailure =
  /Could not resolve|Connection refused|Connection reset|timed out|early EOF|RPC failed|unexpected disconnect|error: (?:408|429|5\d\d)|Failed to connect/i;

/**
 * Git settings that make a hostile repository harmless during its clone: submodules are not fetched, hooks are not run, and symbolic links
 * are created only below the clone. Git runs filters such as LFS only if they are configured on the machine.
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

/**
 * Clones the run's repositories into folders of the workspace. The gateway of the service adds the credential. Returns true if each clone
 * has the commit that the task expects.
 */
export async function cloneRepositories(
  repositories: AgentTask['repositories'],
  options: CloneOptions,
): Promise<boolean> {
  const cloned = repositories.filter(({ checkout }) => checkout !== false);
  const folders = folderNames(cloned);
  let areExpected = true;
  for (const [index, repository] of cloned.entries()) {
    const commit = await clone(repository, folders[index] ?? repository.repo, { ...options, repositories });
    areExpected &&= commit !== undefined && commit === repository.head?.commit;
  }
  return areExpected;
}

type Repository = AgentTask['repositories'][number];

/** Returns the arguments of the git commands that clone a repository into the folder `target`, in their order. */
function cloneSteps(
  { ref, depth = 1, filter, sparse }: Repository,
  url: string,
  target: string,
): readonly (readonly string[])[] {
  const limit = depth === 0 ? [] : ['--depth', String(depth)];
  const tags = depth === 0 ? [] : ['--no-tags'];
  const partial = filter === undefined ? [] : [`--filter=${filter}`];
  const inTarget = (...args: string[]) => ['-C', target, ...args];
  const cone = sparse === undefined ? [] : [inTarget('sparse-checkout', 'set', '--cone', ...sparse)];
  if (ref !== undefined && /^[0-9a-f]{40}$/.test(ref))
    // `git clone` cannot clone a commit by its id.
    return [
      ['init', '--quiet', '--', target],
      inTarget('remote', 'add', ...tags, 'origin', url),
      inTarget('fetch', '--quiet', ...limit, ...partial, 'origin', ref),
      ...cone,
      inTarget('checkout', '--quiet', '--detach', ref),
    ];
  const branch = ref === undefined ? [] : [`--branch=${ref}`];
  const later = sparse === undefined ? [] : ['--no-checkout'];
  return [
    ['clone', '--quiet', ...limit, ...tags, ...partial, ...branch, ...later, '--', url, target],
    ...cone,
    ...(sparse === undefined ? [] : [inTarget('checkout', '--quiet')]),
  ];
}

/** Returns the cloned commit; undefined if the repository is empty. */
async function clone(
  repository: AgentTask['repositories'][number],
  folder: string,
  options: CloneOptions & { readonly repositories: AgentTask['repositories'] },
): Promise<string | undefined> {
  const { owner, repo } = repository;
  const { workspace, signal, tries = 3, firstRetryMs = 1_000 } = options;
  const env = { ...options.env, GIT_CONFIG_NOSYSTEM: '1', GIT_ALLOW_PROTOCOL: 'http:https', GIT_LFS_SKIP_SMUDGE: '1' };
  return await options.step('clone', `${owner}/${repo}`, async (result) => {
    const target = join(workspace, folder);
    const mirror = mirrorOptions(repository, options, env);
    const complete = async (mirrored: string | undefined): Promise<string | undefined> => {
      const commit = await finish(target, mirrored, mirror, options);
      const notes =
        commit === undefined
          ? [await whyEmpty(target, env, signal)]
          : await addParts(repository, options.repositories, { target, env: withoutSkip(env), signal });
      if (notes.length > 0) result.name = `${owner}/${repo}: ${notes.join('; ')}`;
      return commit;
    };
    const mirrored = await useMirror(repository, target, mirror, options);
    if (mirrored.kind === 'cloned') {
      result.exit_code = 0;
      return await complete(mirrored.commit);
    }
    if (mirrored.kind === 'unusable')
      result.output_tail = lastPart(
        `The copy of an earlier run on this worker was not used: ${mirrored.reason}\n`,
        maxSetupOutputBytes,
      );
    for (let attempt = 1; ; attempt++) {
      const cloned = await runGit(cloneSteps(repository, publicUrl(repository), target), { workspace, env, signal });
      result.exit_code = cloned.exitCode;
      if (cloned.exitCode === 0) return await complete(undefined);
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

/** Runs git commands one after another, until one fails. Returns the end of the last one. */
async function runGit(
  steps: readonly (readonly string[])[],
  { workspace, env, signal }: Pick<CloneOptions, 'workspace' | 'env' | 'signal'>,
): Promise<{ readonly exitCode: number; readonly output: string }> {
  let done: { readonly exitCode: number; readonly output: string } = { exitCode: 0, output: '' };
  for (const args of steps) {
    done = await runCommand({ argv: ['git', ...harmless, ...args], cwd: workspace, env, signal });
    signal.throwIfAborted();
    if (done.exitCode !== 0) break;
  }
  return done;
}

/** Without this variable, Git LFS fetches files instead of leaving their pointers. */
const withoutSkip = ({ GIT_LFS_SKIP_SMUDGE: _, ...env }: CloneOptions['env']) => env;

/** Adds submodules and files of Git LFS to a clone. Returns texts about the parts that are missing. */
async function addParts(
  repository: AgentTask['repositories'][number],
  repositories: AgentTask['repositories'],
  clone: AfterClone,
): Promise<string[]> {
  const notes = [
    repository.submodules === true ? await cloneSubmodules(repository, repositories, harmless, clone) : undefined,
    await fetchLfsFiles(repository, clone),
  ];
  return notes.filter((note) => note !== undefined);
}

function mirrorOptions(
  { mirror: name, head }: AgentTask['repositories'][number],
  { cache, signal }: CloneOptions,
  env: CloneOptions['env'],
): MirrorOptions | undefined {
  if (cache === undefined || name === undefined || head === undefined) return undefined;
  return { cache, name, gitOptions: harmless, env, signal };
}

/** Clones from the mirror. Removes the folder if the mirror could not be used. */
async function useMirror(
  repository: AgentTask['repositories'][number],
  target: string,
  mirror: MirrorOptions | undefined,
  { refresh }: CloneOptions,
): Promise<MirrorOutcome> {
  const { head } = repository;
  if (mirror === undefined || head === undefined || refresh) return { kind: 'none' };
  const cloned = await cloneFromMirror(target, { url: publicUrl(repository), branch: head.branch }, mirror);
  if (cloned.kind !== 'cloned') await rm(target, { recursive: true, force: true });
  return cloned;
}

/**
 * Marks the cloned commit with a ref, so that the patch of the run can start from it even after branches have moved. If the mirror has
 * another commit, stores a new mirror. Returns the commit.
 */
async function finish(
  target: string,
  mirrored: string | undefined,
  mirror: MirrorOptions | undefined,
  { env, signal }: CloneOptions,
): Promise<string | undefined> {
  await runCommand({ argv: ['git', 'update-ref', baseRef, 'HEAD'], cwd: target, env, signal });
  const head = await runCommand({ argv: ['git', 'rev-parse', '--verify', 'HEAD'], cwd: target, env, signal });
  const commit = /^[0-9a-f]{40}\n$/.test(head.output) ? head.output.trim() : undefined;
  if (mirror && commit !== undefined && commit !== mirrored) await keepMirror(target, commit, mirror);
  return commit;
}

const maxNamedBranches = 5;

/** Returns the reason why a clone has no commit: the repository has no branches, or its HEAD names a branch that does not exist. */
async function whyEmpty(target: string, env: CloneOptions['env'], signal: AbortSignal): Promise<string> {
  const git = async (...args: string[]): Promise<string> => {
    const { output, exitCode } = await runCommand({ argv: ['git', ...harmless, ...args], cwd: target, env, signal });
    return exitCode === 0 ? output.trim() : '';
  };
  const listed = await git('ls-remote', '--heads', 'origin');
  const branches = [...listed.matchAll(/\trefs\/heads\/(.+)/g)].map(([, name = '']) => name);
  if (branches.length === 0) return 'the repository is empty, so there are no files';
  const named = branches.slice(0, maxNamedBranches).join(', ') + (branches.length > maxNamedBranches ? ', …' : '');
  const head = (await git('symbolic-ref', 'HEAD')).replace(/^refs\/heads\//, '');
  const missing = head === '' || branches.includes(head) ? '' : ` ${head}`;
  return `no files, because its default branch${missing} does not exist. Set the default branch at the code host. Branches: ${named}`;
}
