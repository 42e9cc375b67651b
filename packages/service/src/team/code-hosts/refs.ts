/** Sends the first request of git's smart HTTP protocol: `GET info/refs`. */
import type { Repository } from '@runyard/contract/environments/repositories';
import { askCodeHost, type HostAnswer } from './ask.ts';
import type { UsableCredential } from './credential.ts';
import { writePktLines } from './pkt-line.ts';
import { followed, withPath } from './url.ts';

const maxRedirects = 3;
const suffix = '/info/refs?service=git-upload-pack';

interface RefsQuestion {
  /**
   * Version of git's protocol. With 1, the answer lists the default branch first, then all other branches. With 2, the answer lists the
   * capabilities of the host, but no branches.
   */
  readonly protocol: 1 | 2;
  readonly authorization: string | undefined;
  readonly signal: AbortSignal;
  readonly maxBytes: number;
}

/** Asks for the refs of a repository. `base`: the clone URL of the repository after redirects on the same host. */
export async function askForRefs(
  clone: URL,
  { protocol, authorization, signal, maxBytes }: RefsQuestion,
): Promise<{ readonly answer: HostAnswer; readonly base: URL }> {
  const headers = {
    ...(protocol === 2 ? { 'git-protocol': 'version=2' } : {}),
    ...(authorization ? { authorization } : {}),
  };
  let url = withPath(clone, suffix);
  for (let hop = 0; ; hop += 1) {
    const answer = await askCodeHost({ url, method: 'GET', headers, signal, maxBytes });
    const next = answer.status >= 300 && answer.status < 400 ? followed(url, answer.location, suffix) : undefined;
    if (next === undefined || hop === maxRedirects) {
      const base = new URL(url.href);
      base.search = '';
      base.pathname = base.pathname.replace(/\/info\/refs$/, '');
      return { answer, base };
    }
    url = next;
  }
}

interface ListQuestion extends Pick<RefsQuestion, 'authorization' | 'signal' | 'maxBytes'> {
  /** Clone URL, after redirects. */
  readonly base: URL;
  /** `symrefs` or `peel` of ls-refs. */
  readonly option: 'symrefs' | 'peel';
  /** The host lists the refs whose names begin with one of these texts. */
  readonly prefixes: readonly string[];
}

/** Lists refs with the command `ls-refs` of version 2 of git's protocol (gitprotocol-v2). Rejects if the host cannot be reached. */
export function listRefs({
  base,
  authorization,
  option,
  prefixes,
  signal,
  maxBytes,
}: ListQuestion): Promise<HostAnswer> {
  const named = prefixes.map((prefix) => `ref-prefix ${prefix}`);
  const body = writePktLines(['command=ls-refs', 'delimiter', option, ...named, 'flush']);
  return askCodeHost({
    url: withPath(base, '/git-upload-pack'),
    method: 'POST',
    headers: {
      'git-protocol': 'version=2',
      'content-type': 'application/x-git-upload-pack-request',
      'content-length': String(body.length),
      accept: 'application/x-git-upload-pack-result',
      ...(authorization ? { authorization } : {}),
    },
    body,
    signal,
    maxBytes,
  });
}

/** Returns the reason if the status of an answer means that the code host refuses a repository; otherwise null. */
export function refusalOf(status: number, chosen: UsableCredential, { owner, repo }: Repository): string | null {
  const name = `${owner}/${repo}`;
  switch (status) {
    case 401:
    case 403:
      if (chosen.kind === 'none')
        return `The code host asks for a credential for ${name}${chosen.withheld === undefined ? ', and none is stored.' : `. ${chosen.withheld}`}`;
      chosen.refused();
      return `The code host refuses the stored credential for ${name}.`;
    case 404:
      return `The code host has no repository ${name}, or hides it from ${chosen.kind === 'none' ? 'readers without a credential' : 'the stored credential'}.`;
    default:
      return null;
  }
}
