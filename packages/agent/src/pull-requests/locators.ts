/** Paths of one pull or merge request, on any host, because many teams run GitLab or GitHub under their own name. */
const requestPaths: readonly RegExp[] = [
  // GitHub; Gitea and Forgejo write `pulls`.
  /^\/[^/]+\/[^/]+\/pulls?\/\d+(?=\/|$)/,
  // GitLab, with groups of any depth; without the dash before version 12.
  /^\/[^/]+(?:\/[^/]+)+\/merge_requests\/\d+(?=\/|$)/,
  // Bitbucket Cloud, and Bitbucket Data Center.
  /^\/[^/]+\/[^/]+\/pull-requests\/\d+(?=\/|$)/,
  /^(?:\/[^/]+)?\/(?:projects|users)\/[^/]+\/repos\/[^/]+\/pull-requests\/\d+(?=\/|$)/,
];

/**
 * Returns the URL of a pull request without tabs, query and credentials; undefined if the text is not the URL of a pull request.
 */
export function pullRequestLocator(text: string): string | undefined {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return undefined;
  for (const pattern of requestPaths) {
    const path = pattern.exec(url.pathname)?.[0];
    if (path !== undefined) return url.origin + path;
  }
  return undefined;
}
