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
  /** Maximum size of the patch. A larger changed file would not fit into the patch. */
  maxBytes: number;
}

/**
 * Changes the index so that a diff with the working folder shows every change. Unlike `git add`, this function does not store the contents
 * of files. Rejects with `OutputTooLarge` if a changed file is larger than `maxBytes`, because git reads each compared file into memory.
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
      // If the file has another size than in `base`, it has changed. Refuse the file now, so that git does not read it.
      if (found !== undefined && found.bytes !== Number(bytes)) refuseLarge(name, found, maxBytes);
    }
  }
  // Let git mark the files whose contents are unchanged since the base. Git exits with 1 if there are also changed files.
  await git(['update-index', '-q', '--refresh']).catch((error: Error) => {
    if (!/^git update-index ended with 1:/.test(error.message)) throw error;
  });
  const unreadable: string[] = [];
  for (const name of await list('diff-index', '--name-only', '--ignore-submodules=all', base, '--')) {
    const found = await find(name);
    if (found !== undefined) refuseLarge(name, found, maxBytes);
    if (found?.readable === false) unreadable.push(name);
  }
  // Leave out changed files that the agent cannot read: this setting makes git treat them as unchanged.
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
  // Add each untracked file with the id of an empty file. So the diff sees a change and reads the file from the folder.
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

/** Returns the mode and the size of a file; undefined if the path does not exist or is neither a file nor a link. */
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
