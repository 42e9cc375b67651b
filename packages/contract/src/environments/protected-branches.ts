/** The branches that an environment protects by default. This file imports nothing, because the dashboard loads it. */

const commitId = /^[0-9a-f]{40}$/;

/**
 * Returns the branches that are protected if an environment does not list protected branches: the default branch, and the refs that its
 * repositories check out, except ids of commits. The setup of later runs executes the files of these refs.
 */
export const usualProtectedBranches = (repositories: readonly { readonly ref?: string | undefined }[]): string[] => [
  ...new Set(['HEAD', ...repositories.flatMap(({ ref }) => (ref === undefined || commitId.test(ref) ? [] : [ref]))]),
];
