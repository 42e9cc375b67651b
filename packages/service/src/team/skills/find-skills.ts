import { maxSkillBytes, maxSkillFiles, maxSkillsOfRepository } from '@runyard/contract/limits';
import type { TreeEntry } from './git/objects.ts';
import { isPlainPath, skillFolders } from './spec.ts';

/** A skill in the folders of a commit: a SKILL.md file, and the files in the same folder. */
export interface SkillPlace {
  /** Path of the SKILL.md in the repository. */
  readonly path: string;
  /** Name of the skill's folder; null: the skill is at the top of the repository. */
  readonly folder: string | null;
  readonly entry: TreeEntry;
  /** All files of the skill, the SKILL.md included. */
  readonly files: readonly TreeEntry[];
  /** Says why the skill cannot be used, if this follows from the names or kinds of its files. */
  readonly fault?: string;
}

const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
const fileName = 'SKILL.md';

/** Returns the skills in the searched folders, sorted by the order of these folders, then by path. */
export function findSkills(entries: readonly TreeEntry[]): SkillPlace[] {
  const sorted = inOrder(entries);
  const paths = skillFolders.flatMap((folder) => {
    const found: string[] = [];
    const [start, end] = rangeBelow(sorted, folder);
    for (let at = start; at < end && found.length < maxSkillsOfRepository; at += 1) {
      const path = sorted[at]?.path ?? '';
      if (path.endsWith(`/${fileName}`) && folderOf(path) !== folder) found.push(path);
    }
    return found;
  });
  return paths.slice(0, maxSkillsOfRepository).flatMap((path) => findIn(sorted, path) ?? []);
}

/** Returns the skill with a path; undefined if the repository has no such file. */
export const findSkill = (entries: readonly TreeEntry[], path: string): SkillPlace | undefined =>
  findIn(inOrder(entries), path);

function findIn(sorted: readonly TreeEntry[], path: string): SkillPlace | undefined {
  const entry = sorted[firstFrom(sorted, path)];
  if (entry?.path !== path) return undefined;
  const folder = folderOf(path);
  const [start, end] = rangeBelow(sorted, folder);
  // If SKILL.md is at the top of a repository, the other files there belong to the repository, not to the skill. To find the fault, it
  // is enough to read one file more than the limit allows.
  const files = folder === '' ? [entry] : sorted.slice(start, Math.min(end, start + maxSkillFiles + 1));
  const fault = faultOf(entry, files);
  return {
    path,
    folder: folder === '' ? null : (folder.split('/').at(-1) ?? null),
    entry,
    files,
    ...(fault === undefined ? {} : { fault }),
  };
}

const comesBefore = (a: string, b: string): boolean => a < b;

/** Returns the entries sorted by path. Git itself sorts entries, but a hostile repository can have 200,000 entries in any order. */
function inOrder(entries: readonly TreeEntry[]): readonly TreeEntry[] {
  const isSorted = entries.every(({ path }, at) => at === 0 || !comesBefore(path, entries[at - 1]?.path ?? ''));
  return isSorted ? entries : entries.toSorted((a, b) => (comesBefore(a.path, b.path) ? -1 : 1));
}

/** Returns the index of the first entry that does not come before the path. */
function firstFrom(sorted: readonly TreeEntry[], path: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (comesBefore(sorted[middle]?.path ?? '', path)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the range of the entries below a folder. `0` is the character after `/`. */
const rangeBelow = (sorted: readonly TreeEntry[], folder: string): [start: number, end: number] => [
  firstFrom(sorted, `${folder}/`),
  firstFrom(sorted, `${folder}0`),
];

function faultOf(entry: TreeEntry, files: readonly TreeEntry[]): string | undefined {
  if (entry.kind === 'link') return 'is a symbolic link, and links are not followed: store the file itself';
  if (entry.kind === 'submodule') return 'is a submodule, not a file';
  if (files.length > maxSkillFiles) return `has more than ${maxSkillFiles} files in its folder`;
  const odd = files.find(({ kind }) => kind === 'link' || kind === 'submodule');
  if (odd !== undefined)
    return `has a ${odd.kind === 'link' ? 'symbolic link' : 'submodule'} in its folder, which is not followed: ${quotePath(odd.path)}`;
  const unsafe = files.find(({ path }) => !isPlainPath(path) || Buffer.byteLength(path) > 1000);
  return unsafe && `has a file in its folder whose name cannot be stored everywhere: ${quotePath(unsafe.path)}`;
}

const quotePath = (path: string): string => JSON.stringify(path.slice(0, 200));

/** Returns the fault if a skill's files are too large; undefined if they fit. */
export function faultOfSizes(files: readonly TreeEntry[], sizes: ReadonlyMap<string, number>): string | undefined {
  let total = 0;
  for (const { id } of files) total += sizes.get(id) ?? 0;
  return total > maxSkillBytes ? tooLarge : undefined;
}

export const tooLarge = `has more than ${maxSkillBytes / 1024 / 1024} MB in its folder`;
