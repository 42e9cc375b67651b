import type { AgentTask } from '@runyard/contract/agent/agent-protocol';

type Repository = AgentTask['repositories'][number];

/** Returns the arguments of the git commands that clone a repository into the folder `target`, in their order. */
export function cloneSteps(
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
