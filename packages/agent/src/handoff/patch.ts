import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { git } from './git.ts';
import { clonedAt, objectFormat } from './git-repositories.ts';
import { indexWithoutContents, type RunGit } from './index-without-contents.ts';

export interface PatchOptions {
  /** Folder for what is needed meanwhile; the patch is in it. */
  scratch: string;
  path: string | undefined;
  maxBytes: number;
  signal: AbortSignal;
}

/** What nothing of the run's may decide: which programs git runs, and how it reads and writes. */
const settings = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.autocrlf', 'false'],
  ['core.safecrlf', 'false'],
  ['core.symlinks', 'true'],
  ['core.fileMode', 'true'],
  ['core.untrackedCache', 'false'],
  ['submodule.recurse', 'false'],
  ['diff.ignoreSubmodules', 'all'],
  ['advice.addEmbeddedRepo', 'false'],
  ['gc.auto', '0'],
] as const;

/**
 * Everything that differs from the commit that was cloned, as one patch for `git apply`: commits, staged, unstaged and
 * untracked changes, binary files; not what is ignored. Gives its file; undefined: nothing differs.
 *
 * Git works in a repository of our own beside, which borrows the objects, with a new index and without any configuration of
 * the run's: file system monitors, filters, diff drivers, hooks and submodules that the run has set up are not asked. The diff
 * reads the files where they are: no copy of them is made, which the disk of the sandbox may have no room for.
 */
export async function repositoryPatch(repository: string, options: PatchOptions): Promise<string | undefined> {
  const { scratch, maxBytes, signal } = options;
  const ours = join(scratch, 'git');
  await rm(ours, { recursive: true, force: true });
  await mkdir(ours, { recursive: true });
  const env = {
    PATH: options.path ?? '/usr/bin:/bin',
    HOME: scratch,
    LANG: 'C.UTF-8',
    GIT_DIR: ours,
    GIT_WORK_TREE: repository,
    GIT_INDEX_FILE: join(ours, 'index'),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_COUNT: String(settings.length + 1),
    ...Object.fromEntries(
      [...settings, ['core.excludesFile', join(repository, '.git/info/exclude')] as const].flatMap(
        ([key, value], index) => [
          [`GIT_CONFIG_KEY_${index}`, key],
          [`GIT_CONFIG_VALUE_${index}`, value],
        ],
      ),
    ),
  };
  const run: RunGit = (args, more = {}) => git(args, { cwd: repository, env, signal, ...more });

  const format = await objectFormat(repository);
  const { GIT_WORK_TREE: _, ...bare } = env;
  await git(['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, ours], {
    cwd: scratch,
    env: bare,
    signal,
  });
  await writeFile(join(ours, 'objects/info/alternates'), `${join(repository, '.git/objects')}\n`);
  const base = (await clonedAt(repository)) ?? (await run(['hash-object', '-t', 'tree', '-w', '--stdin'])).trim();
  await run(['read-tree', `${base}^{tree}`]);
  await indexWithoutContents(repository, { git: run, base, maxBytes });
  const file = join(scratch, `${crypto.randomUUID()}.patch`);
  const diff = ['--patch', '--binary', '--full-index', '--no-renames', '--no-color', '--no-ext-diff'];
  const shape = ['--no-textconv', '--ignore-submodules=all', '--src-prefix=a/', '--dst-prefix=b/'];
  try {
    await run(['diff-index', ...diff, ...shape, `${base}^{tree}`, '--'], { to: { file, maxBytes } });
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
  return (await stat(file)).size === 0 ? undefined : file;
}
