import { access, constants, lstat } from 'node:fs/promises';
import { type GitOptions, OutputTooLarge } from './git.ts';

/** Runs git in the repository. */
export type RunGit = (
  args: readonly string[],
  more?: Pick<GitOptions, 'input' | 'to' | 'each' | 'encoding'>,
) => Promise<string>;

export interface IndexOptions {
  git: RunGit;
  /** Commit or tree that the index already contains. */
  base: string;
  /** Limit of the patch. A changed file that is larger would not fit. */
  maxBytes: number;
}

/**
 * Changes the index so that a diff with the working folder shows every change. Unlike `git add`, it does not store the contents of files.
 * Rejects with `OutputTooLarge` if a changed file is larger than `maxBytes`, because git reads each compared file into memory.
 */
export async function indexWithoutContents(repository: string, options: IndexOptions): Promise<void> {
  const { git, base, maxBytes } = options;
  const list = async (command: string, ...args: readonly string[]): Promise<string[]> =>
    (await git([command, '-z', ...args], { encoding: 'latin1' })).split('\0').filter((name) => name !== '');
  const find = (name: string): Promise<FoundFile | undefined> =>
    look(Buffer.concat([Buffer.from(`${repository}/`), Buffer.from(name, 'latin1')]));

  const large = new Map<string, FoundFile>();
  for (const name of await list('ls-files')) {
    const found = await find(name);
    if (found !== undefined && found.bytes > maxBytes) large.set(name, found);
  }
  if (large.size > 0) {
    for (const entry of await list('ls-tree', '-r', '-l', base)) {
      const [, bytes, name = ''] = /^\d+ \w+ [0-9a-f]+ +(\d+|-)\t(.*)$/s.exec(entry) ?? [];
      const found = large.get(name);
      // A file whose size differs from the base has changed. Git does not have to read it.
      if (found !== undefined && found.bytes !== Number(bytes)) refuseLarge(name, found, maxBytes);
    }
  }
  // Marks the files that have the same contents as in the base. Git exits with 1 if other files have changed.
  await git(['update-index', '-q', '--refresh']).catch((error: Error) => {
    if (!/^git update-index ended with 1:/.test(error.message)) throw error;
  });
  const unreadable: string[] = [];
  for (const name of await list('diff-index', '--name-only', '--ignore-submodules=all', base, '--')) {
    const found = await find(name);
    if (found !== undefined) refuseLarge(name, found, maxBytes);
    if (found?.readable === false) unreadable.push(name);
  }
  // Leaves out files that cannot be read.
  if (unreadable.length > 0)
    await git(['update-index', '--assume-unchanged', '-z', '--stdin'], {
      input: zeroEnded(unreadable),
      encoding: 'latin1',
    });

  const empty = (await git(['hash-object', '-t', 'blob', '--stdin'])).trim();
  const entries: string[] = [];
  for (const name of await list('ls-files', '--others', '--exclude-standard')) {
    const found = await find(name);
    if (found === undefined || !found.readable) continue;
    refuseLarge(name, found, maxBytes);
    entries.push(`${found.mode} ${empty}\t${name}`);
  }
  // Each new entry gets the id of an empty file. The diff then sees that the file has changed, and reads it from the folder.
  await git(['update-index', '--add', '--replace', '-z', '--index-info'], {
    input: zeroEnded(entries),
    encoding: 'latin1',
  });
}

interface FoundFile {
  mode: '100644' | '100755' | '120000';
  bytes: number;
  readable: boolean;
}

/** Returns a file; undefined if it does not exist, or if git does not store its content. */
async function look(path: Buffer): Promise<FoundFile | undefined> {
  const stat = await lstat(path).catch(() => undefined);
  if (stat?.isSymbolicLink()) return { mode: '120000', bytes: stat.size, readable: true };
  if (!stat?.isFile()) return undefined;
  const readable = await access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
  return { mode: (stat.mode & 0o100) === 0 ? '100644' : '100755', bytes: stat.size, readable };
}

function refuseLarge(name: string, { bytes }: FoundFile, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  const quotedName = JSON.stringify(Buffer.from(name, 'latin1').toString());
  throw new OutputTooLarge(`${quotedName} has ${bytes} bytes, and a patch may have ${maxBytes}`);
}

const zeroEnded = (lines: readonly string[]): string => lines.map((line) => `${line}\0`).join('');
