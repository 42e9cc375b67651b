import type { Repository } from '@runyard/contract/environments';
import { type Head, headOf } from './advertised-head.ts';
import { askCodeHost, type HostAnswer } from './ask.ts';
import { basicAuthorization, type ChosenCredential } from './credential.ts';
import { followed, withPath } from './url.ts';

/** The answer of the code host about a repository, asked with the credential that the run has for it. */
export type RepositoryAnswer =
  | {
      readonly kind: 'readable';
      readonly repository: Repository;
      readonly url: string;
      /** Id of the stored credential; null: none is stored. */
      readonly credentialId: string | null;
      /** Null: the repository is empty, or its default branch cannot be told. */
      readonly head: Head | null;
    }
  /** `reason` is a sentence. */
  | { readonly kind: 'refused'; readonly repository: Repository; readonly reason: string }
  /** The host said nothing in time, or had a fault. */
  | { readonly kind: 'unknown'; readonly repository: Repository };

interface Access {
  urlOf(repository: Repository): URL;
  credentialFor(repository: Repository): Promise<ChosenCredential>;
}

/** For all repositories together. The agent waits for its task meanwhile. */
const limitMs = 10_000;
const maxRedirects = 3;
const suffix = '/info/refs?service=git-upload-pack';
/** The first line of the list of branches has the default branch and what the host can do. */
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
  const answer = await askForRefs(url, authorization, signal).catch(() => null);
  const name = `${repository.owner}/${repository.repo}`;
  switch (answer?.status) {
    case 200: {
      const credentialId = chosen.kind === 'credential' ? chosen.id : null;
      return { kind: 'readable', repository, url: url.href, credentialId, head: headOf(answer.text) };
    }
    case 401:
    case 403:
      if (chosen.kind === 'none') return refuse(`The code host asks for a credential for ${name}, and none is stored.`);
      chosen.refused();
      return refuse(`The code host refuses the stored credential for ${name}.`);
    case 404:
      return refuse(
        `The code host has no repository ${name}, or hides it from ${chosen.kind === 'none' ? 'readers without a credential' : 'the stored credential'}.`,
      );
    default:
      return { kind: 'unknown', repository };
  }
}

async function askForRefs(base: URL, authorization: string | undefined, signal: AbortSignal): Promise<HostAnswer> {
  // The first version of the protocol: its answer begins with the default branch. The rest is not waited for.
  const headers = authorization ? { authorization } : {};
  let url = withPath(base, suffix);
  for (let hop = 0; ; hop += 1) {
    const answer = await askCodeHost({ url, method: 'GET', headers, signal, maxBytes: headBytes });
    const next = answer.status >= 300 && answer.status < 400 ? followed(url, answer.location, suffix) : undefined;
    if (next === undefined || hop === maxRedirects) return answer;
    url = next;
  }
}
