import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { forEachInTurns } from './in-turns.ts';
import { runGit } from './run-git.ts';

/** An entry of a folder in a commit. */
export interface TreeEntry {
  readonly kind: 'file' | 'executable' | 'link' | 'submodule';
  readonly id: string;
  readonly path: string;
}

/** An entry directly in a folder. `name` does not contain the folder. */
export interface FolderEntry {
  readonly kind: TreeEntry['kind'] | 'folder';
  readonly name: string;
}

/** A bare repository in a separate folder. It has no working tree: none of its files is ever checked out. */
export interface GitObjects {
  addPack(pack: Buffer): Promise<void>;
  /** Lists the files below the paths, at any depth. */
  list(commit: string, paths: readonly string[]): Promise<TreeEntry[]>;
  /** Lists the entries directly in a folder; '' means the root. If the folder does not exist, the list is empty. */
  children(commit: string, folder: string): Promise<FolderEntry[]>;
  /** Returns the sizes of objects; missing objects are left out. */
  sizes(ids: readonly string[]): Promise<Map<string, number>>;
  /** Returns the contents of existing files. */
  read(ids: readonly string[], maxBytes: number): Promise<Map<string, Buffer>>;
  remove(): Promise<void>;
}

const maxListBytes = 16 * 1024 * 1024;
const kinds: Readonly<Record<string, TreeEntry['kind']>> = {
  '100644': 'file',
  '100664': 'file',
  '100755': 'executable',
  '120000': 'link',
  '160000': 'submodule',
};

/** Makes an empty repository below `parent`. */
export async function makeObjects(parent: string, signal: AbortSignal): Promise<GitObjects> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(path.join(parent, 'read-'));
  const git = (args: readonly string[], maxOutputBytes: number, input?: Buffer | string) =>
    runGit(args, { folder, maxOutputBytes, signal, ...(input === undefined ? {} : { input }) });
  // Write these files instead of calling `git init`, which would copy the templates of the machine. A repository needs no other files.
  await mkdir(path.join(folder, 'objects'));
  await mkdir(path.join(folder, 'refs'));
  await writeFile(path.join(folder, 'HEAD'), 'ref: refs/heads/none\n');
  await writeFile(path.join(folder, 'config'), '[core]\n\trepositoryformatversion = 0\n\tbare = true\n');
  const sizes = async (ids: readonly string[]) => {
    const output = await git(['cat-file', '--batch-check'], ids.length * 100 + 1000, `${ids.join('\n')}\n`);
    const found = new Map<string, number>();
    for (const line of output.toString('latin1').split('\n')) {
      const [id = '', type, size] = line.split(' ');
      if (type === 'blob') found.set(id, Number(size));
    }
    return found;
  };
  return {
    addPack: async (pack) => {
      if (pack.length > 0) await git(['index-pack', '--stdin'], 1000, pack);
    },
    list: async (commit, paths) => {
      const output = await git(['ls-tree', '-r', '-z', '--full-tree', commit, '--', ...paths], maxListBytes);
      return (await linesOf(output)).flatMap(({ mode, id, path: name }): TreeEntry[] => {
        const kind = kinds[mode];
        return kind === undefined ? [] : [{ kind, id, path: name }];
      });
    },
    children: async (commit, folder) => {
      const within = folder === '' ? [] : ['--', `${folder}/`];
      const output = await git(['ls-tree', '-z', '--full-tree', commit, ...within], maxListBytes);
      return (await linesOf(output)).flatMap(({ mode, path: name }): FolderEntry[] => {
        const kind = mode === '040000' ? 'folder' : kinds[mode];
        return kind === undefined ? [] : [{ kind, name: folder === '' ? name : name.slice(folder.length + 1) }];
      });
    },
    sizes,
    read: async (ids, maxBytes) => {
      if (ids.length === 0) return new Map();
      const output = await git(['cat-file', '--batch'], maxBytes + ids.length * 100, `${ids.join('\n')}\n`);
      return contentsOf(output);
    },
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }),
  };
}

interface Line {
  readonly mode: string;
  readonly id: string;
  readonly path: string;
}

/** Reads the output of `git ls-tree -z`. */
async function linesOf(output: Buffer): Promise<Line[]> {
  const lines: Line[] = [];
  await forEachInTurns(output.toString('utf8').split('\0'), (line) => {
    const [, mode = '', id = '', name = ''] = /^(\d+) \w+ ([0-9a-f]{40})\t(.*)$/s.exec(line) ?? [];
    if (mode !== '') lines.push({ mode, id, path: name });
  });
  return lines;
}

/** Parses the output of `git cat-file --batch`: for each object a line with id, type and size, the content, and a line feed. */
function contentsOf(output: Buffer): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf('\n', at);
    if (end < 0) break;
    const [id = '', type, size] = output.toString('latin1', at, end).split(' ');
    at = end + 1;
    if (type === 'missing' || size === undefined) continue;
    found.set(id, Buffer.from(output.subarray(at, at + Number(size))));
    at += Number(size) + 1;
  }
  return found;
}
