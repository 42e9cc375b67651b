import type { Repository } from '@runyard/contract/environments';
import { basicAuthorization, type UsableCredential } from './credential.ts';
import { lineText, NotGit, readPktLines } from './pkt-line.ts';
import { askForRefs, refusalOf } from './refs.ts';

/**
 * `name` null: the repository has no default branch yet. `refused`: the credential gives no access to it. The messages
 * are sentences.
 */
export type DefaultBranch =
  | { readonly kind: 'branch'; readonly name: string | null }
  | { readonly kind: 'refused' | 'unavailable'; readonly message: string };

interface Question {
  readonly repository: Repository;
  readonly clone: URL;
  readonly chosen: UsableCredential;
  readonly signal: AbortSignal;
}

const limitMs = 10_000;
/** The first line of the list of branches. */
const headBytes = 8 * 1024;

/** Asks the code host for the default branch of a repository. */
export async function readDefaultBranch({ repository, clone, chosen, signal }: Question): Promise<DefaultBranch> {
  const failed = (message: string): DefaultBranch => ({ kind: 'unavailable', message });
  const authorization = chosen.kind === 'credential' ? basicAuthorization(chosen.credential) : undefined;
  const limited = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  const question = { protocol: 1, authorization, signal: limited, maxBytes: headBytes } as const;
  const asked = await askForRefs(clone, question).catch(() => null);
  const name = `${repository.owner}/${repository.repo}`;
  if (asked === null) return failed(`The code host did not answer for ${name} in time, or cannot be reached.`);
  const { status, bytes } = asked.answer;
  if (status !== 200) {
    const refused = refusalOf(status, chosen, repository);
    return refused === null
      ? failed(`The code host answered ${status} for ${name}.`)
      : { kind: 'refused', message: refused };
  }
  const found = defaultBranchOf(bytes);
  return found === undefined
    ? failed(
        `The code host does not name the default branch of ${name}. Name the protected_branches of the environment instead of HEAD.`,
      )
    : { kind: 'branch', name: found };
}

/**
 * Reads the beginning of the answer to `info/refs` of protocol 1 (gitprotocol-http, "Smart Clients"). Null: there is no
 * default branch. Undefined: the answer does not say.
 */
export function defaultBranchOf(advertisement: Buffer): string | null | undefined {
  try {
    for (const line of readPktLines(advertisement)) {
      if (typeof line === 'string' || line.toString('latin1', 0, 10) === '# service=') continue;
      const [ref = '', capabilities = ''] = lineText(line).split('\0');
      // Without a HEAD in front, its branch has no commit yet.
      if (!ref.endsWith(' HEAD')) return null;
      return / symref=HEAD:refs\/heads\/(\S+)/.exec(` ${capabilities}`)?.[1];
    }
    return null;
  } catch (error) {
    if (error instanceof NotGit) return undefined;
    throw error;
  }
}
