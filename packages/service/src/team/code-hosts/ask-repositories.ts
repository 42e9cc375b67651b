import type { Repository } from '@runyard/contract/environments/environments';
import { type Head, headOf } from './advertised-head.ts';
import { basicAuthorization, type ChosenCredential } from './credential.ts';
import { askForRefs, refusalOf } from './refs.ts';

/** The answer of the code host about a repository, asked with the credential that the run has for it. */
export type RepositoryAnswer =
  | {
      readonly kind: 'readable';
      readonly repository: Repository;
      readonly url: string;
      /** Id of the stored credential; null: none is stored. */
      readonly credentialId: string | null;
      /** Null: the repository is empty, or its default branch is unknown. */
      readonly head: Head | null;
    }
  /** `reason` is a sentence. */
  | { readonly kind: 'refused'; readonly repository: Repository; readonly reason: string }
  /** The host did not answer in time, or failed. */
  | { readonly kind: 'unknown'; readonly repository: Repository };

interface Access {
  urlOf(repository: Repository): URL;
  credentialFor(repository: Repository): Promise<ChosenCredential>;
}

/** Milliseconds for all repositories together. The agent waits for its task meanwhile. */
const limitMs = 10_000;
/** The first line of the list of branches has the default branch and the capabilities of the host. */
const headBytes = 8 * 1024;

/** Asks the code host for the branches of each repository, as `git clone` does first. */
export async function askRepositories(
  repositories: readonly Repository[],
  access: Access,
): Promise<RepositoryAnswer[]> {
  const signal = AbortSignal.timeout(limitMs);
  return await Promise.all(
    repositories.map(async (repository) => {
      const late = new Promise<RepositoryAnswer>((resolve) =>
        signal.addEventListener('abort', () => resolve({ kind: 'unknown', repository }), { once: true }),
      );
      return await Promise.race([ask(repository, access, signal), late]);
    }),
  );
}

async function ask(repository: Repository, access: Access, signal: AbortSignal): Promise<RepositoryAnswer> {
  const refuse = (reason: string) => ({ kind: 'refused', repository, reason }) as const;
  const chosen = await access.credentialFor(repository);
  if (chosen.kind === 'unusable') return refuse(chosen.message);
  if (chosen.kind === 'unavailable') return { kind: 'unknown', repository };
  const authorization = chosen.kind === 'credential' ? basicAuthorization(chosen.credential) : undefined;
  const url = access.urlOf(repository);
  const question = { protocol: 1, authorization, signal, maxBytes: headBytes } as const;
  const asked = await askForRefs(url, question).catch(() => null);
  if (asked === null) return { kind: 'unknown', repository };
  const { status, bytes } = asked.answer;
  if (status === 200) {
    const credentialId = chosen.kind === 'credential' ? chosen.id : null;
    return { kind: 'readable', repository, url: url.href, credentialId, head: headOf(bytes.toString('utf8')) };
  }
  const refused = refusalOf(status, chosen, repository);
  return refused === null ? { kind: 'unknown', repository } : refuse(refused);
}
