/** Finds the commits at which the repositories of a task must be cloned again. */
import type { EnvironmentRepository } from '../environments/repositories.ts';
import type { BaseCommit } from '../runs/agent-events.ts';
import type { AgentTask } from './agent-protocol.ts';

type Named = Pick<EnvironmentRepository, 'owner' | 'repo' | 'path'>;

/**
 * Returns a folder of the workspace for each repository: its `path`, or the name of the repository, or `owner-repo` if another repository
 * already has this folder.
 */
export function folderNames(repositories: readonly Named[]): string[] {
  const named = repositories.map(({ repo, path }) => (path ?? repo).toLowerCase().split('/')[0]);
  return repositories.map(({ owner, repo, path }, index) => {
    if (path !== undefined) return path;
    const isTaken = named.some((name, at) => name === repo.toLowerCase() && (at < index || repositories[at]?.path));
    return isTaken || repo.toLowerCase() === 'attachments' ? `${owner}-${repo}` : repo;
  });
}

/** Returns each cloned repository with its base commit; undefined if `bases` has no commit for its folder. */
export function withBases<R extends Named & Pick<EnvironmentRepository, 'checkout'>>(
  repositories: readonly R[],
  bases: readonly BaseCommit[],
): { readonly repository: R; readonly commit: string | undefined }[] {
  const cloned = repositories.filter(({ checkout }) => checkout !== false);
  const folders = folderNames(cloned);
  return cloned.map((repository, index) => ({
    repository,
    commit: bases.find(({ path }) => path === folders[index])?.commit,
  }));
}

/** Returns the task with each repository at its base commit. If a branch has moved since, the task has no prepared workspace. */
export function atBase(task: AgentTask, bases: readonly BaseCommit[]): AgentTask {
  const cloned = withBases(task.repositories, bases);
  if (cloned.every(({ repository, commit }) => commit === repository.head?.commit)) return task;
  const { prepared_workspace: _, ...others } = task;
  const repositories = task.repositories.map((repository) => {
    const commit = cloned.find((each) => each.repository === repository)?.commit;
    if (commit === undefined) return repository;
    const { mirror: _mirror, head: _head, ...pinned } = repository;
    return { ...pinned, ref: commit };
  });
  return { ...others, repositories };
}
