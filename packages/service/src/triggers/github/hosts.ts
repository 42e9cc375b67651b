/** The addresses of the GitHub host from which the service clones. */
import type { GithubHost } from '../../team/code-hosts/github-api.ts';
import { apiOf } from '../../team/code-hosts/installation-tokens.ts';
import { codeHostUrl, onlyHost } from '../../team/code-hosts/url.ts';

export interface HostSettings {
  readonly RUNYARD_CODE_HOST_URL: string;
  readonly RUNYARD_CODE_HOST_API_URL?: string | undefined;
}

/** Returns the addresses of the host; null if the service clones from several hosts, from GitLab, or from another host. */
export function githubHostOf(
  settings: HostSettings,
  host: string | null = onlyHost(settings.RUNYARD_CODE_HOST_URL),
): GithubHost | null {
  if (host === null || host !== onlyHost(settings.RUNYARD_CODE_HOST_URL)) return null;
  const { origin, hostname, href } = codeHostUrl(settings.RUNYARD_CODE_HOST_URL, { owner: 'a', repo: 'b' });
  const api = apiOf(new URL(href), settings.RUNYARD_CODE_HOST_API_URL);
  // Git may be reached over SSH or by another name, but the pages of a host are below https.
  return api.kind === 'github' && hostname !== '' ? { web: origin, api: api.url } : null;
}
