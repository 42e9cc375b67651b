import type { Repository } from '@runyard/contract/environments/repositories';
import { basicAuthorization, type UsableCredential } from './credential.ts';
import { lineText, NotGit, readPktLines } from './pkt-line.ts';
import { askForRefs, refusalOf } from './refs.ts';

/** `refused`: the credential gives no access to the repository. Each `message` is a whole sentence. */
export interface Unanswered {
  readonly kind: 'refused' | 'unavailable';
  readonly message: string;
}

/** `name` is null if the repository has no default branch yet. */
export type DefaultBranch = { readonly kind: 'branch'; readonly name: string | null } | Unanswered;

export interface AboutRepository {
  readonly repository: Repository;
  readonly clone: URL;
  readonly chosen: UsableCredential;
  readonly signal: AbortSignal;
}

/** `signal` aborts when the time for all requests of one call is over. */
type RefsAnswer = { readonly kind: 'answer'; readonly bytes: Buffer; readonly base: URL; readonly signal: AbortSignal };

const limitMs = 10_000;
/** Maximum size of the part of the answer that is read: it must contain the first line of the list of branches. */
const headBytes = 8 * 1024;

/** Asks the code host for the refs of a repository. `base` is the present clone URL of the repository. */
export async function askAbout(
  { repository, clone, chosen, signal }: AboutRepository,
  protocol: 1 | 2,
  maxBytes: number,
): Promise<RefsAnswer | Unanswered> {
  const failed = (message: string) => ({ kind: 'unavailable', message }) as const;
  const authorization = chosen.kind === 'credential' ? basicAuthorization(chosen.credential) : undefined;
  const limited = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  const question = { protocol, authorization, signal: limited, maxBytes } as const;
  const asked = await askForRefs(clone, question).catch(() => null);
  const name = `${repository.owner}/${repository.repo}`;
  if (asked === null) return failed(`The code host did not answer for ${name} in time, or cannot be reached.`);
  const { status, bytes } = asked.answer;
  if (status === 200) return { kind: 'answer', bytes, base: asked.base, signal: limited };
  const refused = refusalOf(status, chosen, repository);
  return refused === null
    ? failed(`The code host answered ${status} for ${name}.`)
    : { kind: 'refused', message: refused };
}

/** Asks the code host for the default branch of a repository. */
export async function readDefaultBranch(about: AboutRepository): Promise<DefaultBranch> {
  const asked = await askAbout(about, 1, headBytes);
  if (asked.kind !== 'answer') return asked;
  const found = defaultBranchOf(asked.bytes);
  const { owner, repo } = about.repository;
  return found === undefined
    ? {
        kind: 'unavailable',
        message: `The code host does not name the default branch of ${owner}/${repo}. Name the protected_branches of the environment instead of HEAD.`,
      }
    : { kind: 'branch', name: found };
}

/**
 * Reads the beginning of the answer to `info/refs` of protocol 1 (gitprotocol-http, "Smart Clients"). Returns null if there is no default
 * branch. Returns undefined if the answer does not contain it.
 */
export function defaultBranchOf(advertisement: Buffer): string | null | undefined {
  try {
    for (const line of readPktLines(advertisement)) {
      if (typeof line === 'string' || line.toString('latin1', 0, 10) === '# service=') continue;
      const [ref = '', capabilities = ''] = lineText(line).split('\0');
      // A line for HEAD would come before this line. If there is no line for HEAD, the default branch has no commit yet.
      if (!ref.endsWith(' HEAD')) return null;
      return / symref=HEAD:refs\/heads\/(\S+)/.exec(` ${capabilities}`)?.[1];
    }
    return null;
  } catch (error) {
    if (error instanceof NotGit) return undefined;
    throw error;
  }
}
