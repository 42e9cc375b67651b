import { join, matchesGlob, relative } from 'node:path';
import { maxBaseCommits } from '@runyard/contract/limits';
import type { BaseCommit } from '@runyard/contract/runs/agent-events';
import type { ChangedFile, RepositoryChanges } from '@runyard/contract/runs/changes';
import type { RunCheck } from '@runyard/contract/runs/checks';
import { shorten } from '@runyard/contract/wire/shorten';
import { readChanges } from '../handoff/changes.ts';
import { clonedAt, gitRepositories } from '../handoff/git-repositories.ts';
import type { CheckResult } from './run-checks.ts';

/** The commit of each repository of the workspace, by its path, before the harness has worked. */
export type BaseCommits = ReadonlyMap<string, string>;

export async function readBaseCommits(workspace: string): Promise<BaseCommits> {
  const base = new Map<string, string>();
  for (const repository of await gitRepositories(workspace)) {
    const commit = await clonedAt(repository);
    if (commit !== undefined) base.set(relative(workspace, repository), commit);
  }
  return base;
}

/** Returns the base commits as the service stores them. */
export const listBaseCommits = (base: BaseCommits): BaseCommit[] =>
  [...base].map(([path, commit]) => ({ path, commit })).slice(0, maxBaseCommits);

const lostBase = (path: string): string =>
  `the base commit of ${path === '' ? 'the workspace' : path} is missing: the repository was moved or its .git was changed`;

/** Returns why the repositories do not have their base commits any more; undefined if they have. */
export async function faultOfBase(workspace: string, base: BaseCommits): Promise<string | undefined> {
  for (const [path, commit] of base) if ((await clonedAt(join(workspace, path))) !== commit) return lostBase(path);
  return undefined;
}

interface DiffOptions {
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly base: BaseCommits;
}

const failed = (error: string): CheckResult => ({ error });
const place = ({ path }: RepositoryChanges) => (path === '' ? 'the workspace' : shorten(path, 200));

/** Compares the changes of the repositories with limits. A repository whose changes cannot be known fails the check. */
export async function checkDiff(limits: NonNullable<RunCheck['diff']>, options: DiffOptions): Promise<CheckResult> {
  const { repositories } = await readChanges(options);
  if (options.base.size === 0 && repositories.length === 0)
    return failed('the workspace has no git repository, so its changes are not known');
  const unknown = faultOfRepositories(repositories, options.base);
  if (unknown !== undefined) return failed(unknown);
  const files = repositories.flatMap(({ files }) => files);
  const { max_files: maxFiles, max_lines: maxLines, paths } = limits;
  if (maxFiles !== undefined && files.length > maxFiles)
    return failed(`${files.length} files differ; the limit is ${maxFiles}`);
  const outside = paths && files.find((file) => !isInside(file, paths));
  if (outside) return failed(`${shorten(outside.path, 200)} differs; only ${paths.join(', ')} may differ`);
  if (maxLines === undefined) return {};
  const opaque = files.find(({ additions, deletions }) => additions === undefined || deletions === undefined);
  if (opaque) return failed(`${shorten(opaque.path, 200)} differs, and its lines cannot be counted`);
  const lines = files.reduce((sum, { additions = 0, deletions = 0 }) => sum + additions + deletions, 0);
  return lines > maxLines ? failed(`${lines} lines differ; the limit is ${maxLines}`) : {};
}

/** Returns why the changes are not known: a repository is gone, has another base commit, or cannot be compared. */
function faultOfRepositories(repositories: readonly RepositoryChanges[], base: BaseCommits): string | undefined {
  for (const [path, commit] of base) {
    const found = repositories.find((each) => each.path === path);
    if (found?.base_commit !== commit) return lostBase(path);
  }
  for (const repository of repositories) {
    if (repository.problem !== undefined) return `${place(repository)} cannot be compared: ${repository.problem}`;
    if (repository.files_left_out !== undefined) return `${place(repository)} has too many changed files to compare`;
  }
  return undefined;
}

/** A renamed file must be inside with both of its paths. */
const isInside = ({ path, old_path: oldPath }: ChangedFile, patterns: readonly string[]): boolean =>
  [path, ...(oldPath === undefined ? [] : [oldPath])].every((each) =>
    patterns.some((pattern) => matchesGlob(each, pattern)),
  );
