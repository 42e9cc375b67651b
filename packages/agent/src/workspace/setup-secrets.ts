/**
 * Ensures that the agent does not get the secrets of the setup: ends the processes that the setup left, and searches all files that the
 * setup wrote for the values of the secrets.
 */
import type { Stats } from 'node:fs';
import { createUnzip, createZstdDecompress } from 'node:zlib';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { shorten } from '@runyard/contract/wire/shorten';
import { delay } from '@runyard/system/backoff';
import { spellingsOf, withoutLineBreaks } from '@runyard/system/redaction/spellings';
import { fs, monotonicMs } from '../builtin-modules.ts';
import { isRunning, killProcesses, listMarked, listVisible } from '../commands/processes.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import { SetupFailure } from '../setup-failure.ts';

export interface SetupSecretsOptions {
  readonly secrets: NonNullable<AgentTask['setup_secrets']>;
  /** Workspace and home. In a separate sandbox, the search includes all other writable file systems. */
  readonly folders: readonly string[];
  /** True: the sandbox has its own processes and mounts, so all that the agent sees belong to this run. */
  readonly isSeparate: boolean;
  /** `NAME=value` in the environment of every process of the run. */
  readonly marker: string;
  readonly step: SetupSteps;
  readonly signal: AbortSignal;
}

/** Maximum number of bytes to search, with the bytes of unpacked files. At 50 MB a second, this takes under three minutes. */
const maxBytes = 8_000_000_000;
const maxEntries = 2_000_000;
/** The clock of a file system may be late by the length of a tick of the kernel. */
const clockMarginMs = 1_000;
const chunkBytes = 1024 * 1024;
/** Longest time for which the search keeps the event loop busy. In between, the agent answers the service. */
const sliceMs = 20;
const killTimeoutMs = 5_000;
const maxNamed = 3;
const maxFound = 100;

/**
 * Starts to watch the setup; call it before the setup commands. Returns a function to call after them. That function throws a
 * `SetupFailure` if a process of the setup cannot be ended, or if a file contains one of the secrets or cannot be searched.
 */
export function watchSetup(options: SetupSecretsOptions): () => Promise<void> {
  const { secrets, isSeparate, marker, step, signal } = options;
  const list = () => (isSeparate ? listVisible() : listMarked(marker));
  const before = new Set(list());
  const sinceMs = Date.now() - clockMarginMs;
  const names = secrets.map(({ name }) => name).join(', ');
  return () =>
    step('workspace', `searched for the secrets of the setup: ${names}`, async (result) => {
      const ended = await endProcesses(list, before);
      const searched = await search({ ...options, sinceMs });
      signal.throwIfAborted();
      const { found, unreadable, files } = searched;
      if (found.length > 0) throw new SetupFailure(describeFound(found));
      if (unreadable.length > 0)
        throw new SetupFailure(
          `The setup got the secrets ${names}, which the agent must not see, and left files that cannot be searched for them: ${named(unreadable)}. Remove these files in the last setup command.`,
        );
      const processes = ended === 0 ? '' : `; ended ${ended} ${ended === 1 ? 'process' : 'processes'} of the setup`;
      result.name = `searched ${files} ${files === 1 ? 'file' : 'files'} of the setup for ${names}${processes}`;
    });
}

/** Ends every listed process that is not in `before`. Returns the number of ended processes. */
async function endProcesses(list: () => number[], before: ReadonlySet<number>): Promise<number> {
  const ended = new Set<number>();
  const deadline = monotonicMs() + killTimeoutMs;
  for (;;) {
    const left = list().filter((pid) => !before.has(pid) && isRunning(pid));
    if (left.length === 0) return ended.size;
    if (monotonicMs() > deadline)
      throw new SetupFailure(
        `A process of the setup (${left[0]}) cannot be ended, and it may hold a secret that the agent must not see.`,
      );
    for (const pid of left) ended.add(pid);
    killProcesses(left);
    await delay(10);
  }
}

interface Found {
  readonly secret: string;
  readonly path: string;
}

function describeFound(found: readonly Found[]): string {
  const secrets = [...new Set(found.map(({ secret }) => secret))];
  const paths = [...new Set(found.map(({ path }) => path))];
  const [is, each] = secrets.length === 1 ? ['the secret', 'this secret'] : ['the secrets', 'these secrets'];
  return `The setup left ${is} ${secrets.join(', ')} in ${named(paths)}. Only setup commands may see ${each}, so the agent does not begin. Remove the value in the last setup command, or let the tool read it from the variable: .npmrc, for example, expands \${${secrets[0]}}.`;
}

const named = (paths: readonly string[]): string =>
  paths
    .slice(0, maxNamed)
    .map((path) => shorten(path, 300))
    .join(', ') + (paths.length > maxNamed ? `, and ${paths.length - maxNamed} more` : '');

/** Finds the forms of secrets in a file that arrives in pieces. */
interface Matcher {
  /** Returns the names of the secrets in this piece or across the border to the piece before. */
  push(piece: Buffer): string[];
}

function matcherOf(secrets: SetupSecretsOptions['secrets']): () => Matcher {
  const forms = secrets.flatMap(({ name, value }) =>
    spellingsOf([value]).map((form) => ({ name, form: Buffer.from(form).toString('latin1') })),
  );
  // Line breaks may stand between all characters of a form.
  const overlap = 4 * Math.max(0, ...forms.map(({ form }) => form.length));
  return () => {
    let end = '';
    return {
      push(piece) {
        const text = end + piece.toString('latin1');
        end = text.slice(-overlap);
        const joined = withoutLineBreaks(text);
        return forms.filter(({ form }) => joined.includes(form)).map(({ name }) => name);
      },
    };
  };
}

interface Searched {
  readonly found: readonly Found[];
  /** Paths of files and folders that cannot be read. */
  readonly unreadable: readonly string[];
  readonly files: number;
}

/** Searches every file that was written or changed since `sinceMs`. */
async function search({
  secrets,
  folders,
  isSeparate,
  sinceMs,
  signal,
}: SetupSecretsOptions & { readonly sinceMs: number }): Promise<Searched> {
  const newMatcher = matcherOf(secrets);
  const found: Found[] = [];
  const unreadable: string[] = [];
  let [bytes, entries, files] = [0, 0, 0];
  let sliceEnd = monotonicMs() + sliceMs;
  const roots = [...new Set([...folders, ...(isSeparate ? writableMounts() : [])])];

  const pause = async () => {
    if (monotonicMs() < sliceEnd) return;
    await new Promise(setImmediate);
    signal.throwIfAborted();
    sliceEnd = monotonicMs() + sliceMs;
  };
  const count = (added: number) => {
    bytes += added;
    if (bytes > maxBytes)
      throw new SetupFailure(
        `The setup wrote more than ${maxBytes / 1e9} GB, which is too much to search for the secrets that the agent must not see. Remove large files in the last setup command, or give the secrets to the agent too.`,
      );
  };

  const look = (piece: Buffer, matcher: Matcher, path: string) => {
    count(piece.length);
    for (const secret of matcher.push(piece)) if (found.length < maxFound) found.push({ secret, path });
  };

  async function searchFile(path: Buffer, name: string): Promise<void> {
    const flags = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;
    const file = fs.openSync(path, flags);
    try {
      const matcher = newMatcher();
      const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, fs.fstatSync(file).size + 1));
      let unpacker: ReturnType<typeof unpackerOf>;
      for (let at = 0, read = -1; read !== 0; at += read) {
        read = fs.readSync(file, buffer, 0, buffer.length, at);
        const piece = buffer.subarray(0, read);
        look(piece, matcher, name);
        if (at === 0) unpacker = unpackerOf(piece);
        await pause();
      }
      if (unpacker !== undefined)
        await searchUnpacked(fs.createReadStream('', { fd: file, start: 0, autoClose: false }), unpacker, name);
    } finally {
      fs.closeSync(file);
    }
  }

  async function searchUnpacked(
    packed: NodeJS.ReadableStream,
    unpacker: NonNullable<ReturnType<typeof unpackerOf>>,
    name: string,
  ): Promise<void> {
    const matcher = newMatcher();
    packed.pipe(unpacker);
    try {
      for await (const piece of unpacker as AsyncIterable<Buffer>) {
        look(piece, matcher, name);
        await pause();
      }
    } catch (error) {
      // The file only begins like a packed one. Its own bytes are searched already.
      if (error instanceof SetupFailure || signal.aborted) throw error;
    } finally {
      unpacker.destroy();
    }
  }

  async function visit(path: Buffer, device: number | undefined): Promise<void> {
    entries += 1;
    if (entries > maxEntries)
      throw new SetupFailure(
        `The sandbox has more than ${maxEntries} files, which are too many to search for the secrets that the agent must not see.`,
      );
    await pause();
    const state = fs.lstatSync(path, { throwIfNoEntry: false });
    if (state === undefined) return;
    const name = path.toString();
    const isChanged = state.ctimeMs >= sinceMs;
    if (state.isDirectory()) {
      if (device !== undefined && (state.dev !== device || roots.includes(name))) return;
      for (const entry of await readable(path, state, () => fs.readdirSync(path, { encoding: 'buffer' }), [])) {
        look(entry, newMatcher(), name);
        await visitReadable(Buffer.concat([path, Buffer.from('/'), entry]), state.dev);
      }
    } else if (isChanged && state.isSymbolicLink()) {
      look(fs.readlinkSync(path, { encoding: 'buffer' }), newMatcher(), name);
    } else if (isChanged && state.isFile()) {
      files += 1;
      await readable(path, state, () => searchFile(path, name), undefined);
    }
  }

  async function visitReadable(path: Buffer, device: number | undefined): Promise<void> {
    try {
      await visit(path, device);
    } catch (error) {
      if (error instanceof SetupFailure || signal.aborted) throw error;
      unreadable.push(path.toString());
    }
  }

  for (const root of roots) await visitReadable(Buffer.from(root), undefined);
  return { found, unreadable, files };
}

/**
 * Reads a file or folder. If it belongs to the user of the agent and its mode forbids reading, allows reading until it has been read,
 * because a command of the agent could do the same. Returns `other` if only other users can read it.
 */
async function readable<T>(path: Buffer, { mode, uid }: Stats, read: () => T | Promise<T>, other: T): Promise<T> {
  const isOwn = uid === process.getuid?.();
  const isClosed = isOwn && uid !== 0 && (mode & 0o400) === 0;
  if (isClosed) fs.chmodSync(path, mode | 0o700);
  try {
    return await read();
  } catch (error) {
    if (!isOwn && (error as NodeJS.ErrnoException).code === 'EACCES') return other;
    throw error;
  } finally {
    if (isClosed) fs.chmodSync(path, mode & 0o7777);
  }
}

/** Returns a stream that unpacks a file with this beginning; undefined if the file is not packed by gzip, zlib (git's objects) or Zstandard. */
function unpackerOf(beginning: Buffer) {
  const [first = 0, second = 0] = beginning;
  const isZlib = first === 0x78 && (first * 256 + second) % 31 === 0;
  if ((first === 0x1f && second === 0x8b) || isZlib) return createUnzip();
  return beginning.subarray(0, 4).equals(zstandard) ? createZstdDecompress() : undefined;
}

const zstandard = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** File systems whose files are about processes or the kernel. */
const ofKernel = /^(?:proc|sysfs|devpts|devtmpfs|mqueue|cgroup2?|debugfs|tracefs|securityfs)$/;

/** Returns the folders at which writable file systems are mounted (proc_pid_mountinfo(5)). */
function writableMounts(): string[] {
  const lines = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n').filter(Boolean);
  return lines.flatMap((line) => {
    const [ofMount = '', ofSystem = ''] = line.split(' - ');
    const [, , , , path = '', options = ''] = ofMount.split(' ');
    const [kind = '', , superOptions = ''] = ofSystem.split(' ');
    const isReadOnly = [options, superOptions].some((each) => each.split(',').includes('ro'));
    const name = path.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
    return isReadOnly || ofKernel.test(kind) ? [] : [name];
  });
}
