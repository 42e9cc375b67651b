/**
 * Reads from a repository by git's protocol version 2 (https://git-scm.com/docs/protocol-v2) over HTTP, in this process and not by a git
 * program. So an answer can be cut at an exact number of bytes, and no argument, variable or file of another program contains the
 * credential.
 */
import type { Repository } from '@runyard/contract/environments/repositories';
import { maxRepositoryPackBytes } from '@runyard/contract/limits';
import { askCodeHost, type HostAnswer } from '../../code-hosts/ask.ts';
import { basicAuthorization, type UsableCredential } from '../../code-hosts/credential.ts';
import { lineText, NotGit, readPktLines, writePktLines } from '../../code-hosts/pkt-line.ts';
import { askForRefs, refusalOf } from '../../code-hosts/refs.ts';
import { withPath } from '../../code-hosts/url.ts';
import { Unreadable } from './run-git.ts';

/** A repository on its code host. */
export interface RemoteRepository {
  /** Clone URL of the repository, after redirects. */
  readonly base: URL;
  /** Returns the commit of a branch; if no name is given, of the default branch. */
  readHead(branch?: string): Promise<string>;
  /**
   * Returns a pack with a commit and its folders, without older commits, and without the files if the host can omit them.
   */
  fetchTree(commit: string): Promise<Buffer>;
  /** Returns a pack with these objects. Returns null if they are larger than `maxBytes`. */
  fetchObjects(ids: readonly string[], maxBytes: number): Promise<Buffer | null>;
}

export interface RemoteOptions {
  readonly repository: Repository;
  readonly clone: URL;
  readonly chosen: UsableCredential;
  /** Aborts every request, even while its answer is read. */
  readonly signal: AbortSignal;
  /** Maximum size of the pack of a commit. Default: 32 MB. */
  readonly maxPackBytes?: number;
}

const maxCapabilityBytes = 64 * 1024;
const objectId = /^[0-9a-f]{40}$/;

/** Connects to a repository. This function and the functions of its result throw `Unreadable`. */
export async function openRemote(options: RemoteOptions): Promise<RemoteRepository> {
  const { repository, clone, chosen, signal, maxPackBytes = maxRepositoryPackBytes } = options;
  const name = `${repository.owner}/${repository.repo}`;
  const authorization = chosen.kind === 'credential' ? basicAuthorization(chosen.credential) : undefined;
  const unreachable = () =>
    new Unreadable('unavailable', `The code host did not answer for ${name} in time, or cannot be reached.`);
  const refs = await askForRefs(clone, { protocol: 2, authorization, signal, maxBytes: maxCapabilityBytes }).catch(
    () => {
      throw unreachable();
    },
  );
  const refused = refusalOf(refs.answer.status, chosen, repository);
  if (refused !== null) throw new Unreadable('refused', refused);
  checkStatus(refs.answer.status);
  const capabilities = asGit(() =>
    [...readPktLines(refs.answer.bytes)].filter((line) => typeof line !== 'string').map(lineText),
  );
  if (!capabilities.includes('version 2'))
    throw new Unreadable('unsuitable', `The code host does not speak version 2 of git's protocol for ${name}.`);
  if (capabilities.some((line) => line.startsWith('object-format=') && line !== 'object-format=sha1'))
    throw new Unreadable('unsuitable', `${name} has object ids that are not SHA-1, which are not supported.`);
  const features = (capabilities.find((line) => line.startsWith('fetch=')) ?? '').slice('fetch='.length).split(' ');

  function checkStatus(status: number): void {
    if (status === 200) return;
    throw new Unreadable('unavailable', `The code host answered ${status} for ${name}.`);
  }

  /** Runs `read`. Throws `Unreadable` if the answer does not follow the protocol. */
  function asGit<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof NotGit)) throw error;
      throw new Unreadable(
        'unavailable',
        `The code host gave an answer for ${name} that is not of git: ${error.message}.`,
      );
    }
  }

  /** Returns the answer to a command. `isCut`: the answer has more than `maxBytes` bytes, and `bytes` is the beginning of it. */
  async function ask(lines: Parameters<typeof writePktLines>[0], maxBytes: number): Promise<HostAnswer> {
    const headers = {
      'git-protocol': 'version=2',
      'content-type': 'application/x-git-upload-pack-request',
      accept: 'application/x-git-upload-pack-result',
      ...(authorization === undefined ? {} : { authorization }),
    };
    const body = writePktLines(lines);
    const url = withPath(refs.base, '/git-upload-pack');
    const length = { 'content-length': String(body.length) };
    const answer = await askCodeHost({
      url,
      method: 'POST',
      headers: { ...headers, ...length },
      body,
      signal,
      maxBytes,
    }).catch(() => {
      throw unreachable();
    });
    checkStatus(answer.status);
    return answer;
  }

  async function fetchPack(
    wants: readonly string[],
    more: readonly string[],
    maxBytes: number,
  ): Promise<Buffer | null> {
    const wanted = wants.map((id) => `want ${id}`);
    const answer = await ask(
      ['command=fetch', 'delimiter', 'no-progress', ...more, ...wanted, 'done', 'flush'],
      maxBytes,
    );
    return answer.isCut ? null : asGit(() => packOf(answer.bytes));
  }

  return {
    base: refs.base,
    readHead: async (branch) => {
      const wanted = branch === undefined ? 'HEAD' : `refs/heads/${branch}`;
      const lines = ['command=ls-refs', 'delimiter', `ref-prefix ${wanted}`, 'flush'];
      const { bytes, isCut } = await ask(lines, maxCapabilityBytes);
      const id = asGit(() => idOf(bytes, wanted, isCut)) ?? '';
      if (objectId.test(id)) return id;
      if (isCut)
        throw new Unreadable('unsuitable', `${name} has too many branches whose names begin with ${branch ?? wanted}.`);
      const missing = branch === undefined ? 'default branch with a commit' : `branch ${branch}`;
      throw new Unreadable('unsuitable', `${name} has no ${missing}.`);
    },
    fetchTree: async (commit) => {
      const filter = features.includes('filter') ? ['filter blob:none'] : [];
      const pack = await fetchPack([commit], [...filter, 'deepen 1'], maxPackBytes);
      if (pack !== null) return pack;
      const limit = maxPackBytes / 1024 / 1024;
      const why = filter.length === 0 ? ', and its code host cannot leave out the files' : '';
      throw new Unreadable('unsuitable', `${name} is too large to be read: more than ${limit} MB${why}.`);
    },
    fetchObjects: (ids, maxBytes) => fetchPack(ids, [], maxBytes),
  };
}

/**
 * Returns the id of a ref in the answer to `ls-refs`. The answer has all refs whose names begin with the ref's name. Hosts sort refs, so
 * the wanted ref is present even in a cut answer. Throws `NotGit`.
 */
function idOf(answer: Buffer, wanted: string, isCut: boolean): string | undefined {
  try {
    for (const line of readPktLines(answer)) {
      if (typeof line === 'string') continue;
      const [id, ref] = lineText(line).split(' ');
      if (ref === wanted) return id;
    }
  } catch (error) {
    // The last line of an answer that was cut is incomplete.
    if (!isCut || !(error instanceof NotGit)) throw error;
  }
  return undefined;
}

/** Returns the pack in the answer to `fetch`: the lines after `packfile` contain the pack on band 1. Throws `NotGit`. */
function packOf(answer: Buffer): Buffer {
  const parts: Buffer[] = [];
  let isInPack = false;
  for (const line of readPktLines(answer)) {
    if (typeof line === 'string') continue;
    if (!isInPack) {
      if (line.toString('latin1', 0, 4) === 'ERR ') throw new NotGit(printable(line.subarray(4)));
      isInPack = lineText(line) === 'packfile';
    } else if (line[0] === 1) parts.push(line.subarray(1));
    else if (line[0] === 3) throw new NotGit(printable(line.subarray(1)));
  }
  return Buffer.concat(parts);
}

/** Returns a message of the host, without characters that could confuse a terminal. */
const printable = (said: Buffer): string =>
  said
    .toString('utf8')
    .slice(0, 200)
    .replace(/\p{C}+/gu, ' ')
    .trim();
