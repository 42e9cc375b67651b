import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { git } from './git.ts';
import { clonedAt, objectFormat } from './git-repositories.ts';
import { indexWithoutContents, type RunGit } from './index-without-contents.ts';

export interface PatchOptions {
  /** Folder for temporary files and the patch. */
  scratch: string;
  path: string | undefined;
  maxBytes: number;
  signal: AbortSignal;
}

/** Git settings that override those of the run's repository. They decide which programs git runs, and how git reads and writes files. */
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

/** Makes a folder for temporary files. */
export async function scratchIn(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  return await mkdtemp(join(folder, 'runyard-snapshot-'));
}

/** Runs git with an index that shows every change since the cloned commit. */
interface PatchGit {
  readonly run: RunGit;
  /** The cloned commit; the empty tree if the repository was created in the sandbox. */
  readonly base: string;
  readonly commit: string | undefined;
}

/**
 * Makes one patch for `git apply` with all changes since the cloned commit. The patch has committed, staged, unstaged and untracked
 * changes and binary files, but no ignored files. Returns the file of the patch; undefined if there are no changes.
 */
export async function repositoryPatch(repository: string, options: PatchOptions): Promise<string | undefined> {
  const { scratch, maxBytes } = options;
  const { run, base } = await openPatchGit(repository, options);
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

/**
 * Prepares git for comparisons of the working folder with the cloned commit. Git works in a separate repository that has a new index
 * and borrows the objects of the run's repository, but not its configuration. So git does not use file system monitors, filters, diff
 * drivers, hooks or submodules of the run. The diff reads the files in the working folder itself, because the disk of the sandbox may
 * have no space for copies.
 */
export async function openPatchGit(
  repository: string,
  options: PatchOptions,
  more: readonly (readonly [name: string, value: string])[] = [],
): Promise<PatchGit> {
  const { scratch, maxBytes, signal } = options;
  const exclude = ['core.excludesFile', join(repository, '.git/info/exclude')] as const;
  const gitOptions = [...settings, exclude, ...more];
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
    GIT_CONFIG_COUNT: String(gitOptions.length),
    ...Object.fromEntries(
      gitOptions.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
  const run: RunGit = (args, given = {}) => git(args, { cwd: repository, env, signal, ...given });

  const format = await objectFormat(repository);
  const { GIT_WORK_TREE: _, ...bare } = env;
  await git(['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, ours], {
    cwd: scratch,
    env: bare,
    signal,
  });
  await writeFile(join(ours, 'objects/info/alternates'), `${join(repository, '.git/objects')}\n`);
  const commit = await clonedAt(repository);
  const base = commit ?? (await run(['hash-object', '-t', 'tree', '-w', '--stdin'])).trim();
  await run(['read-tree', `${base}^{tree}`]);
  await indexWithoutContents(repository, { git: run, base, maxBytes });
  return { run, base, commit };
}
