import { Repository } from '@runyard/contract/environments/repositories';

/** Returns the clone URL of a repository on the code host, from the setting RUNYARD_CODE_HOST_URL. */
export function codeHostUrl(template: string, repository: Repository): URL {
  const filled = template
    .replaceAll('{owner}', encodeURIComponent(repository.owner))
    .replaceAll('{repo}', encodeURIComponent(repository.repo));
  return new URL(filled);
}

/**
 * Returns the repository at an address that a person gives: of its page, or of its clone by HTTPS or SSH. Returns undefined if the address
 * does not lead to the code host of the template.
 */
export function repositoryAt(template: string, address: string): Repository | undefined {
  const scp = /^git@([^/:]+):([^:]+)$/.exec(address.trim());
  const url = URL.parse(scp === null ? address.trim() : `ssh://git@${scp[1]}/${scp[2]}`);
  if (url === null || !['https:', 'http:', 'ssh:'].includes(url.protocol)) return undefined;
  const path = url.pathname.replace(/\/+$/, '').replace(/\.git$/, '');
  const [owner, repo] = path.split('/').slice(-2);
  const { success, data } = Repository.safeParse({ owner, repo });
  if (!success) return undefined;
  const known = codeHostUrl(template, data);
  // The port of SSH is not the port of HTTPS.
  const isSameHost = url.protocol === 'ssh:' ? url.hostname === known.hostname : url.host === known.host;
  return isSameHost && known.pathname.replace(/\.git$/, '').endsWith(path) ? data : undefined;
}

/** Returns the host that receives the credentials of a repository: in lower case, with the port if the URL has one. */
export const hostOf = (url: URL): string => url.host.toLowerCase();

/** Returns the host on which all repositories are; null if the host part of the template contains the owner or the repository. */
export function onlyHost(template: string): string | null {
  const [one, other] = ['a', 'b'].map((name) => hostOf(codeHostUrl(template, { owner: name, repo: name })));
  return one === other ? (one ?? null) : null;
}

/**
 * Returns the URL in the header `Location` if it leads to the same git service on the same host; undefined if the redirect must not be
 * followed. GitHub redirects requests for renamed repositories in this way.
 */
export function followed(from: URL, location: string | undefined, suffix: string): URL | undefined {
  const to = location === undefined ? null : URL.parse(location, from.href);
  if (to === null || to.origin !== from.origin || to.username !== '' || to.password !== '') return undefined;
  return `${to.pathname}${to.search}`.endsWith(suffix) ? to : undefined;
}

/** Returns the URL for a step of git's smart HTTP protocol. It is below the clone URL. */
export function withPath(base: URL, suffix: string): URL {
  const url = new URL(base.href);
  const [path = '', search = ''] = suffix.split('?');
  url.pathname = `${base.pathname.replace(/\/$/, '')}${path}`;
  url.search = search;
  return url;
}
