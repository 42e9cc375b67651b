import type { Repository } from '@runyard/contract/environments';
import { type ErrorDetail, errorSlug } from '@runyard/contract/errors';
import type { CodeHosts } from '../../code-hosts/code-hosts.ts';

/** Code hosts that have names of their own. */
const providers: Readonly<Record<string, string>> = { 'github.com': 'github', 'gitlab.com': 'gitlab' };

interface Refused {
  readonly kind: 'no_access';
  readonly message: string;
  readonly detail: ErrorDetail;
}

/** Asks the code host for the repositories of a run before its sandbox clones them. Null: it refuses none. */
export async function findRefused(
  { codeHosts, baseUrl }: { readonly codeHosts: CodeHosts; baseUrl(): string },
  { executionId }: { readonly executionId: string },
  repositories: readonly Repository[],
): Promise<Refused | null> {
  if (repositories.length === 0) return null;
  const found = await codeHosts.findInaccessible(executionId, repositories);
  const [first] = found;
  if (first === undefined) return null;
  const host = codeHosts.hostOf(first.repository);
  const advice = `Store a credential for ${host} with bin/runyard code-hosts add, or correct github_repos of the environment, and start the run again.`;
  return {
    kind: 'no_access',
    message: [...found.map(({ reason }) => reason), advice].join('\n'),
    detail: {
      provider: providers[host] ?? host,
      auth_url: `${baseUrl()}/errors/${errorSlug('external_authentication_required')}`,
      inaccessible_repos: found.map(({ repository: { owner, repo } }) => `${owner}/${repo}`),
    },
  };
}
