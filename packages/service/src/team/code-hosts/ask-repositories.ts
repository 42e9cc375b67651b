import type { Repository } from '@runyard/contract/environments/repositories';
import { basicAuthorization, type ChosenCredential } from './credential.ts';
import { lineText, NotGit, readPktLines } from './pkt-line.ts';
import { askForRefs, listRefs, refusalOf } from './refs.ts';

/** The commit that a clone of a repository checks out. */
interface Head {
  /** Id of the commit: 40 hexadecimal digits. */
  readonly commit: string;
  /** The default branch, or the `ref` that was asked for. */
  readonly branch: string;
}

/** A repository, with the branch, tag or commit to check out. Without `ref`: the default branch. */
export type RepositoryAtRef = Repository & { readonly ref?: string | undefined };

/** Name of the branch. It has a form that git cannot read as an option or a revision in any argument. */
const plainBranch = /^refs\/heads\/([A-Za-z0-9_][A-Za-z0-9_./+@#-]{0,199})$/;

/**
 * Parses the beginning of the answer to `info/refs` (gitprotocol-http, "Smart Clients"): a line with the service, a flush, and the line
 * `COMMIT HEAD\0CAPABILITIES`, each with its length before it. Returns null if there is no such line, or HEAD is not a branch.
 */
export function headOf(advertisement: string): Head | null {
  const found = /^001e# service=git-upload-pack\n0000[0-9a-f]{4}([0-9a-f]{40}) HEAD\0([^\n]*)\n/.exec(advertisement);
  const target = / symref=HEAD:(\S+)/.exec(` ${found?.[2] ?? ''}`)?.[1];
  const branch = plainBranch.exec(target ?? '')?.[1];
  const commit = found?.[1];
  return commit && branch && !branch.includes('..') ? { commit, branch } : null;
}

/** The answer of the code host about a repository, with the run's credential for the repository. */
export type RepositoryAnswer =
  | {
      readonly kind: 'readable';
      /** The object that was asked about. */
      readonly repository: RepositoryAtRef;
      readonly url: string;
      /** Id of the stored credential; null if none is stored. */
      readonly credentialId: string | null;
      /** The credential belongs to a person. */
      readonly isPersonal?: true;
      /** null if the repository is empty, if it has no such ref, or if its default branch is unknown. */
      readonly head: Head | null;
    }
  /** `reason`: a sentence for people. */
  | { readonly kind: 'refused'; readonly repository: Repository; readonly reason: string }
  /** The code host did not answer in time, or failed. */
  | { readonly kind: 'unknown'; readonly repository: Repository };

interface Access {
  urlOf(repository: Repository): URL;
  credentialFor(repository: Repository): Promise<ChosenCredential>;
}

/** Time limit, in milliseconds, for all repositories together. It is short, because the agent waits for its task meanwhile. */
const limitMs = 10_000;
/**
 * Read only the beginning of the answer: the first line of the list of branches has the default branch and the capabilities of the host.
 */
const headBytes = 8 * 1024;

/** Asks the code host for the branches of each repository. This is also the first request of `git clone`. */
export async function askRepositories(
  repositories: readonly RepositoryAtRef[],
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

async function ask(repository: RepositoryAtRef, access: Access, signal: AbortSignal): Promise<RepositoryAnswer> {
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
    const isPersonal = chosen.kind === 'credential' && chosen.isPersonal;
    const owned = isPersonal ? { isPersonal } : {};
    return {
      kind: 'readable',
      repository,
      url: url.href,
      credentialId,
      ...owned,
      head:
        repository.ref === undefined
          ? headOf(bytes.toString('utf8'))
          : await headOfRef(repository.ref, { base: asked.base, authorization, signal }),
    };
  }
  const refused = refusalOf(status, chosen, repository);
  return refused === null ? { kind: 'unknown', repository } : refuse(refused);
}

/** Maximum size of a list of the refs whose names begin with one name. */
const maxListBytes = 256 * 1024;

/** Returns the commit of a branch, a tag or a commit id; null if the code host names none. */
async function headOfRef(
  ref: string,
  about: { readonly base: URL; readonly authorization: string | undefined; readonly signal: AbortSignal },
): Promise<Head | null> {
  if (/^[0-9a-f]{40}$/.test(ref)) return { commit: ref, branch: ref };
  const prefixes = [`refs/heads/${ref}`, `refs/tags/${ref}`];
  const listed = await listRefs({ ...about, option: 'peel', prefixes, maxBytes: maxListBytes }).catch(() => null);
  if (listed === null || listed.status !== 200 || listed.isCut) return null;
  const commits = commitsOf(listed.bytes);
  const commit = prefixes.map((name) => commits.get(name)).find((id) => id !== undefined);
  return commit === undefined ? null : { commit, branch: ref };
}

/** Reads the answer to `ls-refs` (gitprotocol-v2): lines `ID REF`, for annotated tags with `peeled:COMMIT`. Maps each ref to its commit. */
function commitsOf(list: Buffer): ReadonlyMap<string, string> {
  const commits = new Map<string, string>();
  try {
    for (const line of readPktLines(list)) {
      if (typeof line === 'string') continue;
      const [, id, ref, peeled] = /^([0-9a-f]{40}) (\S+)(?:.* peeled:([0-9a-f]{40}))?/.exec(lineText(line)) ?? [];
      if (id !== undefined && ref !== undefined) commits.set(ref, peeled ?? id);
    }
  } catch (error) {
    // The host does not speak version 2 of the protocol, or answers something else.
    if (!(error instanceof NotGit)) throw error;
  }
  return commits;
}
