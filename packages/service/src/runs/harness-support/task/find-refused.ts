import type { Repository } from '@runyard/contract/environments/environments';
import { type ErrorDetail, errorSlug } from '@runyard/contract/wire/errors';
import type { RepositoryAnswer } from '../../../team/code-hosts/ask-repositories.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';

/** Code hosts whose names are fixed. */
const providers: Readonly<Record<string, string>> = { 'github.com': 'github', 'gitlab.com': 'gitlab' };

interface Refused {
  readonly kind: 'no_access';
  readonly message: string;
  readonly detail: ErrorDetail;
}

/** Returns the refusals among the answers of the code host about a run's repositories. Null: it refuses none. */
export function findRefused(
  { codeHosts, baseUrl }: { readonly codeHosts: Pick<CodeHosts, 'hostOf'>; baseUrl(): string },
  answers: readonly RepositoryAnswer[],
): Refused | null {
  const found = answers.filter((answer) => answer.kind === 'refused');
  const [first] = found;
  if (first === undefined) return null;
  const host = codeHosts.hostOf(first.repository);
  const advice = `Store a credential for ${host} with bin/runyard code-hosts add, or correct github_repos of the environment, and start the run again.`;
  const message = [...found.map(({ reason }) => reason), advice].join('\n');
  return {
    kind: 'no_access',
    message,
    detail: detailOf(
      { codeHosts, baseUrl },
      first.repository,
      found.map(({ repository }) => repository),
    ),
  };
}

/** Returns the members of `external_authentication_required` for repositories on the same host as `first`. */
export function detailOf(
  { codeHosts, baseUrl }: { readonly codeHosts: Pick<CodeHosts, 'hostOf'>; baseUrl(): string },
  first: Repository,
  repositories: readonly Repository[],
): ErrorDetail {
  const host = codeHosts.hostOf(first);
  return {
    provider: providers[host] ?? host,
    auth_url: `${baseUrl()}/errors/${errorSlug('external_authentication_required')}`,
    inaccessible_repos: repositories.map(({ owner, repo }) => `${owner}/${repo}`),
  };
}
