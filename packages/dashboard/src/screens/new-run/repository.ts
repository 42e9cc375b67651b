/** Reads a repository from the text that a person types, and finds environments with only this repository. */
import type { Environment } from '@runyard/contract/environments/environments';
import { isAmbiguousRef, refName, repositoryName } from '@runyard/contract/environments/repository-names';

/** A repository on the code host, and the branch, tag or commit to check out; absent: its default branch. */
export interface RepositoryAtRef {
  readonly owner: string;
  readonly repo: string;
  readonly ref?: string;
}

const withRef = (owner = '', repo = '', ref?: string): RepositoryAtRef | undefined => {
  const name = repo.replace(/\.git$/, '');
  if (!repositoryName.test(owner) || !repositoryName.test(name)) return undefined;
  if (ref === undefined) return { owner, repo: name };
  return refName.test(ref) && !isAmbiguousRef(ref) ? { owner, repo: name, ref } : undefined;
};

/** Returns the path without percent encoding; undefined if the encoding is wrong. */
function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/**
 * Reads `owner/name`, `owner/name@ref`, or the address of a repository: of its page, of a branch (`…/tree/ref`), or of its clone.
 * Returns a message if the text is neither. `host`: host of all repositories; undefined if the host differs between owners.
 */
export function parseRepositoryText(text: string, host: string | undefined): RepositoryAtRef | string {
  const example = host === undefined ? '' : `, or its address on ${host}`;
  const unreadable = `must be a repository: owner/name or owner/name@branch${example}`;
  const given = text.trim();
  const scp = /^git@([^/:]+):([^:]+)$/.exec(given);
  const isAddress = scp !== null || given.includes('://') || (host !== undefined && given.startsWith(`${host}/`));
  if (!isAddress) {
    const [, owner, repo, ref] = /^([^/@]+)\/([^/@]+)(?:@(.+))?$/.exec(given) ?? [];
    return withRef(owner, repo, ref) ?? unreadable;
  }
  const url = URL.parse(scp ? `ssh://git@${scp[1]}/${scp[2]}` : given.includes('://') ? given : `https://${given}`);
  if (url === null || !['https:', 'http:', 'ssh:'].includes(url.protocol)) return unreadable;
  const isSsh = url.protocol === 'ssh:';
  if (url.password !== '' || (url.username !== '' && !isSsh))
    return 'must have no user name or password: code hosts in the settings keep credentials';
  // The port of SSH is not the port of HTTPS.
  if (host === undefined || (isSsh ? url.hostname !== host.replace(/:\d+$/, '') : url.host !== host))
    return host === undefined ? unreadable : `must be on ${host}, the code host of this service`;
  const [path = '', ref] = (decoded(url.pathname) ?? '').replace(/\/+$/, '').split(/\/(?:-\/)?tree\/(.*)/s, 2);
  const [owner, repo, ...more] = path.slice(1).split('/');
  return (more.length === 0 && withRef(owner, repo, ref)) || unreadable;
}

/** Returns the environments of the team whose workspace has this repository at this ref, and no other repository. */
export function environmentsWith(
  { owner, repo, ref }: RepositoryAtRef,
  environments: readonly Environment[],
  teamUid: string,
): Environment[] {
  const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
  return environments.filter(({ scope, config: { github_repos: [first, ...others] = [] } }) => {
    if (first === undefined || others.length > 0 || scope?.uid !== teamUid || first.checkout === false) return false;
    return isSame(first.owner, owner) && isSame(first.repo, repo) && first.ref === ref;
  });
}

/** Returns the name of a new environment with the repository. */
export const nameOf = ({ owner, repo, ref }: RepositoryAtRef): string =>
  `${owner}-${repo}${ref === undefined ? '' : `@${ref}`}`.slice(0, 200);
