import type { Repository } from '@runyard/contract/environments';
import { basicAuthorization, type ChosenCredential } from './credential.ts';
import { askForRefs, refusalOf } from './refs.ts';

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
  const asked = await askForRefs(access.urlOf(repository), { authorization, signal, maxBytes: 0 }).catch(() => null);
  return asked && refusalOf(asked.answer.status, chosen, repository);
}
