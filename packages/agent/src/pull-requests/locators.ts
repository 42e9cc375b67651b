/** Paths of one pull or merge request, of any host: many run GitLab or GitHub under a name of their own. */
const requestPaths: readonly RegExp[] = [
  // GitHub; Gitea and Forgejo write `pulls`.
  /^\/[^/]+\/[^/]+\/pulls?\/\d+(?=\/|$)/,
  // GitLab, with groups of any depth; without the dash before version 12.
  /^\/[^/]+(?:\/[^/]+)+\/merge_requests\/\d+(?=\/|$)/,
  // Bitbucket Cloud, and Bitbucket Data Center.
  /^\/[^/]+\/[^/]+\/pull-requests\/\d+(?=\/|$)/,
  /^(?:\/[^/]+)?\/(?:projects|users)\/[^/]+\/repos\/[^/]+\/pull-requests\/\d+(?=\/|$)/,
];

/** The locator of the pull request that a URL leads to, without tabs, query and credentials; undefined: it leads to none. */
export function pullRequestLocator(text: string): string | undefined {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return undefined;
  for (const pattern of requestPaths) {
    const path = pattern.exec(url.pathname)?.[0];
    if (path !== undefined) return url.origin + path;
  }
  return undefined;
}
