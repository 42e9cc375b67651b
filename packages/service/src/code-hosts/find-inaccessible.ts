import type { Repository } from '@runyard/contract/environments';
import { askCodeHost, type HostAnswer } from './ask.ts';
import { basicAuthorization, type ChosenCredential } from './credential.ts';
import { followed, withPath } from './url.ts';

export interface InaccessibleRepository {
  readonly repository: Repository;
  /** A sentence that says what the code host answered. */
  readonly reason: string;
}

interface Access {
  urlOf(repository: Repository): URL;
  credentialFor(repository: Repository): Promise<ChosenCredential>;
}

/** For all repositories together. The agent waits for its task meanwhile. */
const limitMs = 10_000;
const maxRedirects = 3;
const suffix = '/info/refs?service=git-upload-pack';

/**
 * Asks the code host for the branches of each repository, as `git clone` does first, and returns those that it refuses. A
 * repository about which the host says nothing in time is not among them: its clone is tried, and tells more.
 */
export async function findInaccessible(
  repositories: readonly Repository[],
  access: Access,
): Promise<InaccessibleRepository[]> {
  const signal = AbortSignal.timeout(limitMs);
  const reasons = await Promise.all(
    repositories.map(async (repository) => {
      const late = new Promise<null>((resolve) =>
        signal.addEventListener('abort', () => resolve(null), { once: true }),
      );
      return await Promise.race([whyNot(repository, access, signal), late]);
    }),
  );
  return repositories.flatMap((repository, index) => {
    const reason = reasons[index];
    return typeof reason === 'string' ? [{ repository, reason }] : [];
  });
}

/** Returns why the repository cannot be cloned; null: it can, or nothing is known. */
async function whyNot(repository: Repository, access: Access, signal: AbortSignal): Promise<string | null> {
  const chosen = await access.credentialFor(repository);
  if (chosen.kind === 'unusable') return chosen.message;
  if (chosen.kind === 'unavailable') return null;
  const authorization = chosen.kind === 'credential' ? basicAuthorization(chosen.credential) : undefined;
  const answer = await askForRefs(access.urlOf(repository), authorization, signal).catch(() => null);
  const name = `${repository.owner}/${repository.repo}`;
  switch (answer?.status) {
    case 401:
    case 403:
      if (chosen.kind === 'none') return `The code host asks for a credential for ${name}, and none is stored.`;
      chosen.refused();
      return `The code host refuses the stored credential for ${name}.`;
    case 404:
      return `The code host has no repository ${name}, or hides it from ${chosen.kind === 'none' ? 'readers without a credential' : 'the stored credential'}.`;
    default:
      return null;
  }
}

async function askForRefs(base: URL, authorization: string | undefined, signal: AbortSignal): Promise<HostAnswer> {
  // Version 2 of the protocol: the answer does not list the branches.
  const headers = { 'git-protocol': 'version=2', ...(authorization ? { authorization } : {}) };
  let url = withPath(base, suffix);
  for (let hop = 0; ; hop += 1) {
    const answer = await askCodeHost({ url, method: 'GET', headers, signal, maxBytes: 0 });
    const next = answer.status >= 300 && answer.status < 400 ? followed(url, answer.location, suffix) : undefined;
    if (next === undefined || hop === maxRedirects) return answer;
    url = next;
  }
}
