/** Makes the workspace of a check: the base commits with the stored changes, except those of trusted paths. */
import { rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { maxSnapshotFileBytes } from '@runyard/contract/limits';
import { matchesTrustedPath } from '@runyard/contract/runs/trusted-paths';
import { git } from '../handoff/git.ts';
import { clonedAt } from '../handoff/git-repositories.ts';
import { scratchIn } from '../handoff/patch.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import type { ServiceClient } from '../service/client.ts';
import { SetupFailure } from '../setup-failure.ts';
import type { StoredPatch } from './stored-changes.ts';

type FreshCheck = NonNullable<AgentTask['fresh_check']>;

interface ApplyOptions {
  readonly client: Pick<ServiceClient, 'download'>;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly step: SetupSteps;
  readonly signal: AbortSignal;
}

/**
 * Sets each clone to its base commit and applies its patch. Changes of trusted paths are left out by their paths, so deleted, renamed and
 * replaced files are as in the base commit, and new files are not made. Throws a `SetupFailure` if a base commit is missing, a patch does not fit,
 * or a trusted path names no file.
 */
export async function applyToBase(
  { base_commits: bases, trusted_paths: trusted }: FreshCheck,
  patches: readonly StoredPatch[],
  options: ApplyOptions,
): Promise<void> {
  const { workspace, env, step, signal } = options;
  const scratch = await scratchIn(env.HOME === undefined ? workspace : join(env.HOME, '.cache'));
  const unmatched = new Set(trusted);
  try {
    for (const { path, commit } of bases) {
      const clone = join(workspace, path);
      const name = path === '' ? 'the workspace' : path;
      await step('workspace', `${name}: base commit ${commit.slice(0, 12)} with the stored changes`, async (result) => {
        if ((await clonedAt(clone)) !== commit)
          throw new SetupFailure(`The base commit ${commit} of ${name} is missing.`);
        const run = gitIn(clone, env, signal);
        await run('reset', '--quiet', '--hard', commit);
        await run('clean', '--quiet', '-ffd');
        const files = (await run('ls-tree', '-r', '-z', '--name-only', '--full-tree', commit)).split('\0');
        for (const pattern of unmatched)
          if (files.some((file) => matchesTrustedPath(file, pattern))) unmatched.delete(pattern);
        const patch = patches.find(({ folder }) => folder === basename(clone));
        if (patch === undefined) return;
        const kept = await apply(patch, { run, trusted, file: join(scratch, 'changes.patch') }, options);
        if (kept > 0)
          result.name = `${name}: base commit with the stored changes; ${kept} changed trusted files are unchanged here`;
      }).catch(asFailure(name));
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  const [missing] = unmatched;
  if (missing !== undefined) throw new SetupFailure(`The trusted path ${missing} names no file of the base commit.`);
}

const asFailure = (name: string) => (error: unknown) => {
  if (error instanceof SetupFailure) throw error;
  throw new SetupFailure(`The changes of ${name} cannot be checked: ${(error as Error).message}`);
};

type RunGit = (...args: readonly string[]) => Promise<string>;

/** Runs git without hooks and without settings of the machine. */
function gitIn(cwd: string, env: ApplyOptions['env'], signal: AbortSignal): RunGit {
  const own = Object.fromEntries(Object.entries(env).filter((each): each is [string, string] => each[1] !== undefined));
  const safe = { ...own, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_LFS_SKIP_SMUDGE: '1' };
  const settings = [
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    'submodule.recurse=false',
    'core.quotePath=false',
  ];
  const options = settings.flatMap((setting) => ['-c', setting]);
  return async (...args) => await git([...options, ...args], { cwd, env: safe, signal });
}

/** Applies a patch without its changes of trusted paths. Returns the number of these changes. */
async function apply(
  { path, size_bytes: size }: StoredPatch,
  { run, trusted, file }: { readonly run: RunGit; readonly trusted: readonly string[]; readonly file: string },
  { client, signal }: ApplyOptions,
): Promise<number> {
  await writeFile(file, await client.download(path, Math.min(size, maxSnapshotFileBytes), { signal }), { mode: 0o600 });
  const changed = pathsIn(await run('apply', '--numstat', '-z', '--', file));
  const excluded = changed.filter((each) => trusted.some((pattern) => matchesTrustedPath(each, pattern)));
  // The names go to git as UTF-8, so another encoding would name another file.
  if (trusted.length > 0 && changed.some((each) => each.includes('\ufffd')))
    throw new Error('a changed file has a name that is not UTF-8');
  await run('apply', '--whitespace=nowarn', ...excluded.map((each) => `--exclude=${literally(each)}`), '--', file);
  // Git knows a moved file only by its new path. The agent program stores no moves, but another program may have stored the patch.
  const missing = (await run('diff-files', '-z', '--name-only', '--no-renames', '--diff-filter=DT')).split('\0');
  const moved = missing.find((each) => each !== '' && trusted.some((pattern) => matchesTrustedPath(each, pattern)));
  if (moved !== undefined) throw new Error(`they move the trusted file ${moved}`);
  return excluded.length;
}

/** Returns the paths in the output of `--numstat -z`. */
const pathsIn = (output: string): string[] =>
  output.split('\0').flatMap((line) => /^(?:\d+|-)\t(?:\d+|-)\t(.+)$/s.exec(line)?.[1] ?? []);

/** Returns the pattern of git that matches only this path. */
const literally = (path: string): string => path.replaceAll(/[*?[\\]/g, String.raw`\$&`);
