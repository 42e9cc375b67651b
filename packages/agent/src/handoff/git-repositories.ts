import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const maxDepth = 3;
const maxRepositories = 20;

/** Returns the working folders of git repositories near the top of the workspace. Links are not followed. */
export async function gitRepositories(workspace: string): Promise<string[]> {
  const found: string[] = [];
  const look = async (folder: string, depth: number): Promise<void> => {
    if (found.length >= maxRepositories) return;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    if (entries.some((entry) => entry.name === '.git' && entry.isDirectory())) {
      found.push(folder);
      return;
    }
    if (depth === maxDepth) return;
    const folders = entries.filter((entry) => entry.isDirectory() && entry.name !== 'node_modules');
    for (const { name } of folders.sort((a, b) => (a.name < b.name ? -1 : 1)))
      await look(join(folder, name), depth + 1);
  };
  await look(workspace, 0);
  return found;
}

/** The ref of the commit that the agent cloned. Other repositories have no such ref. */
export const baseRef = 'refs/runyard/base';

const objectId = /^([0-9a-f]{40}|[0-9a-f]{64})$/;

/**
 * Returns the commit at which a repository was cloned; undefined if the repository was created in the sandbox. Reads the commit from
 * files and does not run git, because the repository's configuration may make git run programs.
 */
export async function clonedAt(repository: string): Promise<string | undefined> {
  const text = (name: string) => smallText(join(repository, '.git', name));
  const loose = (await text(baseRef)).trim();
  if (objectId.test(loose)) return loose;
  for (const line of (await text('packed-refs')).split('\n')) {
    const [id = '', name] = line.split(' ');
    if (name === baseRef && objectId.test(id)) return id;
  }
  const [first = ''] = (await text('logs/HEAD')).split('\n', 1);
  const [, id = ''] = first.split(' ');
  return /\tclone: /.test(first) && objectId.test(id) ? id : undefined;
}

/** Returns the branch that is checked out; undefined if HEAD is not on a branch. */
export async function branchOf(repository: string): Promise<string | undefined> {
  const head = await smallText(join(repository, '.git/HEAD'));
  return /^ref: refs\/heads\/(.{1,1024})\n?$/.exec(head)?.[1];
}

/** Returns the hash function that a repository uses for its object ids. */
export async function objectFormat(repository: string): Promise<'sha1' | 'sha256'> {
  const config = await smallText(join(repository, '.git/config'));
  return /^\s*objectformat\s*=\s*"?sha256/im.test(config) ? 'sha256' : 'sha1';
}

async function smallText(path: string): Promise<string> {
  try {
    const stat = await lstat(path);
    return stat.isFile() && stat.size < 8 * 1024 * 1024 ? await readFile(path, 'utf8') : '';
  } catch {
    return '';
  }
}
