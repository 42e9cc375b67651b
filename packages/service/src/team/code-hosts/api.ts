/** The API of a code host. */
export interface CodeHostApi {
  readonly kind: 'github' | 'gitlab';
  /** Without a slash at the end. */
  readonly url: string;
}

/** Returns the API of the host of a clone URL. `setting`: RUNYARD_CODE_HOST_API_URL. */
export function apiOf(host: URL, setting: string | undefined): CodeHostApi {
  if (setting !== undefined) {
    const url = setting.replace(/\/+$/, '');
    return { kind: url.endsWith('/api/v4') ? 'gitlab' : 'github', url };
  }
  if (host.hostname === 'github.com') return { kind: 'github', url: 'https://api.github.com' };
  if (host.hostname === 'gitlab.com' || host.hostname.startsWith('gitlab.'))
    return { kind: 'gitlab', url: `${host.origin}/api/v4` };
  // GitHub Enterprise Server.
  return { kind: 'github', url: `${host.origin}/api/v3` };
}
