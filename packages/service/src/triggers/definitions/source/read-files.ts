/** Reads the files of a definition from one commit. Throws `Unreadable` if the repository cannot be read. */
import { collectFaults, type DefinitionFault, start } from '@runyard/contract/factories/files/faults';
import {
  isDefinitionFile,
  isDefinitionFolder,
  pathFault,
  placeOf,
  shownPath,
} from '@runyard/contract/factories/files/layout';
import { maxDefinitionBytes, maxDefinitionFileBytes, maxDefinitionFiles } from '@runyard/contract/limits';
import type { DefinitionFile } from '@runyard/definitions/read-files';
import { forEachInTurns } from '../../../team/skills/git/in-turns.ts';
import { type GitObjects, makeObjects, type TreeEntry } from '../../../team/skills/git/objects.ts';
import type { RemoteRepository } from '../../../team/skills/git/upload-pack.ts';

export interface ReadOptions {
  readonly remote: RemoteRepository;
  readonly commit: string;
  /** Folder in the repository that contains factory.yaml; '' for the root. */
  readonly folder: string;
  /** Folder on this machine in which repositories are stored while they are read. */
  readonly parent: string;
  readonly signal: AbortSignal;
}

/** The files of a definition, or the faults that prevent parsing them. */
export type ReadFiles =
  | { readonly ok: true; readonly files: readonly DefinitionFile[] }
  | { readonly ok: false; readonly faults: readonly DefinitionFault[] };

/** A file of the definition in the commit. `path` is relative to the folder of the definition. */
interface Found {
  readonly path: string;
  readonly kind: TreeEntry['kind'];
  readonly id: string;
}

/**
 * Largest size of a pack with the files. A pack compresses its files, but a file of random bytes becomes a little larger, so the limit
 * is above `maxDefinitionBytes`.
 */
const packBytes = maxDefinitionBytes + 64 * 1024;
const pointerStart = 'version https://git-lfs.github.com/spec/';

/** Reads factory.yaml and the other files of the definition. Does not check out files. */
export async function readSourceFiles(options: ReadOptions): Promise<ReadFiles> {
  const pack = await options.remote.fetchTree(options.commit);
  const objects = await makeObjects(options.parent, options.signal);
  try {
    await objects.addPack(pack);
    const found = await findFiles(options, objects);
    if (found === null) return faulty(`the definition has more than ${maxDefinitionFiles} files`);
    const odd = oddEntries(found);
    if (odd !== null) return odd;
    return await readContents(options, objects, found);
  } finally {
    await objects.remove();
  }
}

/** Finds the files of the definition. Returns null if there are more files than a definition may have. */
async function findFiles({ commit, folder }: ReadOptions, objects: GitObjects): Promise<Found[] | null> {
  const prefix = folder === '' ? '' : `${folder}/`;
  const wanted: string[] = [];
  await forEachInTurns(await objects.children(commit, folder), ({ name }) => {
    if (isDefinitionFolder(name) || isDefinitionFile(name)) wanted.push(prefix + name);
  });
  if (wanted.length === 0) return [];
  // The names become arguments of git, which can have only a limited number of arguments. A hostile folder may have any number of names
  // that resemble those of a definition.
  if (wanted.length > maxDefinitionFiles) return null;
  const found: Found[] = [];
  await forEachInTurns(await objects.list(commit, wanted), ({ kind, id, path: full }) => {
    if (found.length > maxDefinitionFiles) return;
    const path = full.slice(prefix.length);
    if (pathFault(path) !== undefined || placeOf(path).kind !== 'other') found.push({ kind, id, path });
  });
  return found.length > maxDefinitionFiles ? null : found;
}

/** Refuses links and submodules. A link could lead to any file, and the files of a submodule are in another repository. */
function oddEntries(found: readonly Found[]): ReadFiles | null {
  const faults = collectFaults();
  for (const { path, kind } of found) {
    const message = pathFault(path);
    if (message !== undefined) faults.add(shownPath(path), start, message);
    else if (kind === 'link') faults.add(path, start, 'is a symbolic link; definitions have only files');
    else if (kind === 'submodule') faults.add(path, start, 'is a submodule; definitions have only files');
  }
  return faults.count() === 0 ? null : { ok: false, faults: faults.list() };
}

async function readContents({ remote }: ReadOptions, objects: GitObjects, found: readonly Found[]): Promise<ReadFiles> {
  const ids = [...new Set(found.map(({ id }) => id))];
  const there = await objects.sizes(ids);
  const missing = ids.filter((id) => !there.has(id));
  if (missing.length > 0) {
    const pack = await remote.fetchObjects(missing, packBytes);
    if (pack === null) return tooLarge;
    await objects.addPack(pack);
  }
  const sizes = await objects.sizes(ids);
  const faults = collectFaults();
  for (const { path, id } of found)
    if ((sizes.get(id) ?? Number.POSITIVE_INFINITY) > maxDefinitionFileBytes)
      faults.add(path, start, `is too large; a file has at most ${maxDefinitionFileBytes} bytes`);
  if (faults.count() > 0) return { ok: false, faults: faults.list() };
  // The sum counts a file at two paths twice, although git stores it once.
  if (found.reduce((sum, { id }) => sum + (sizes.get(id) ?? 0), 0) > maxDefinitionBytes) return tooLarge;
  const contents = await objects.read(ids, maxDefinitionBytes);
  const files = found.map(({ path, id }) => ({ path, content: contents.get(id) ?? Buffer.alloc(0) }));
  for (const { path, content } of files)
    if (content.toString('latin1', 0, pointerStart.length) === pointerStart)
      faults.add(path, start, 'is stored with Git LFS; store definition files in git itself');
  return faults.count() > 0 ? { ok: false, faults: faults.list() } : { ok: true, files };
}

/** The fault is about the definition as a whole, so it is at the beginning of its main file. */
function faulty(message: string): Extract<ReadFiles, { ok: false }> {
  return { ok: false, faults: [{ file: 'factory.yaml', ...start, message }] };
}

const tooLarge = faulty(`the files of the definition have more than ${maxDefinitionBytes / 1024 / 1024} MB together`);
