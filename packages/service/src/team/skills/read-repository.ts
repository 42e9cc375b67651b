/** Reads the skills of one repository from its code host. All functions throw `Unreadable` if the repository cannot be read. */
import { setImmediate } from 'node:timers/promises';
import { maxSkillBytes, maxSkillTextBytes } from '@runyard/contract/limits';
import { faultOfSizes, findSkill, findSkills, type SkillPlace, tooLarge } from './find-skills.ts';
import { parseSkill, type SkillText } from './front-matter.ts';
import { type GitObjects, makeObjects } from './git/objects.ts';
import type { RemoteRepository } from './git/upload-pack.ts';
import { type SkillSpec, skillFolders } from './spec.ts';

export interface ListedSkill {
  readonly path: string;
  /** Name of its folder. */
  readonly folder: string;
  /** The text of the skill, or the reason why the skill cannot be used. */
  readonly text: SkillText | string;
}

/** A file of a skill, in the form in which the agent gets it. */
export interface SkillFile {
  /** Path of the file, relative to the folder of the skill. */
  readonly path: string;
  /** Base64 */
  readonly data: string;
  readonly executable?: true;
}

/** A skill with all its files. */
export interface SkillBundle extends SkillText {
  readonly path: string;
  readonly files: readonly SkillFile[];
}

export interface ReadOptions {
  readonly remote: RemoteRepository;
  readonly commit: string;
  /** Folder for repositories that exist only while they are read. */
  readonly parent: string;
  readonly signal: AbortSignal;
}

async function withObjects<T>(options: ReadOptions, read: (objects: GitObjects) => Promise<T>): Promise<T> {
  const pack = await options.remote.fetchTree(options.commit);
  const objects = await makeObjects(options.parent, options.signal);
  try {
    await objects.addPack(pack);
    return await read(objects);
  } finally {
    await objects.remove();
  }
}

/** Fetches files that are missing. If they are larger than `maxBytes` together, fetches nothing and returns their ids; else returns []. */
async function fetchMissing(
  { remote }: ReadOptions,
  objects: GitObjects,
  ids: readonly string[],
  maxBytes: number,
): Promise<readonly string[]> {
  const there = await objects.sizes(ids);
  const missing = [...new Set(ids)].filter((id) => !there.has(id));
  if (missing.length === 0) return [];
  const pack = await remote.fetchObjects(missing, maxBytes);
  if (pack === null) return missing;
  await objects.addPack(pack);
  return [];
}

/** Allow a little more, because a pack compresses its files, but a file of random bytes becomes a little larger. */
const roomFor = (bytes: number): number => bytes + 64 * 1024;

/** Reads all skills in the searched folders, including malformed skills. */
export async function readSkills(options: ReadOptions): Promise<ListedSkill[]> {
  return await withObjects(options, async (objects) => {
    const places = findSkills(await objects.list(options.commit, skillFolders));
    const sound = places.filter(({ fault }) => fault === undefined).map(({ entry }) => entry.id);
    const tooMuch = await fetchMissing(options, objects, sound, roomFor(8 * maxSkillTextBytes));
    // Read the texts without the very large ones, so that a very large file does not prevent the other skills.
    const giant = new Set<string>();
    for (const id of tooMuch)
      for (const each of await fetchMissing(options, objects, [id], roomFor(maxSkillTextBytes))) giant.add(each);
    const sizes = await objects.sizes(sound);
    const small = sound.filter((id) => (sizes.get(id) ?? Number.POSITIVE_INFINITY) <= maxSkillTextBytes);
    const contents = await objects.read(small, places.length * maxSkillTextBytes);
    return await parseAll(places, contents);
  });
}

/**
 * Maximum time, in milliseconds, to read the front matter of all skills of a repository. The front matter of one skill usually takes less
 * than a millisecond.
 */
const parseMs = 3_000;

/** Parses the texts, with a pause after each, so that the process can do other work. */
async function parseAll(places: readonly SkillPlace[], contents: ReadonlyMap<string, Buffer>): Promise<ListedSkill[]> {
  const skills: ListedSkill[] = [];
  let spentMs = 0;
  for (const { path, folder, entry, fault } of places) {
    const bytes = contents.get(entry.id);
    const began = performance.now();
    const parsed = () => (bytes ? parseSkill(bytes, folder) : `is larger than ${maxSkillTextBytes / 1024} KB`);
    const late = 'was not read, because the front matter of other skills takes too long to read';
    skills.push({ path, folder: folder ?? '', text: fault ?? (spentMs > parseMs ? late : parsed()) });
    spentMs += performance.now() - began;
    await setImmediate();
  }
  return skills;
}

/** Reads one skill with its files. Returns the reason as a string if the skill does not exist or cannot be used. */
export async function readBundle(options: ReadOptions, { place }: SkillSpec): Promise<SkillBundle | string> {
  return await withObjects(options, async (objects) => {
    const found = await findPlace(options, objects, place);
    if (typeof found === 'string') return found;
    const { path, folder, files, fault } = found;
    const because = (reason: string) => `${path} ${reason}`;
    if (fault !== undefined) return because(fault);
    const ids = files.map(({ id }) => id);
    const tooMuch = await fetchMissing(options, objects, ids, roomFor(maxSkillBytes));
    const sizes = await objects.sizes(ids);
    const wrongSize = tooMuch.length > 0 ? tooLarge : faultOfSizes(files, sizes);
    if (wrongSize !== undefined) return because(wrongSize);
    const contents = await objects.read(ids, maxSkillBytes);
    const text = parseSkill(contents.get(found.entry.id) ?? Buffer.alloc(0), folder);
    if (typeof text === 'string') return because(text);
    const start = path.length - 'SKILL.md'.length;
    return {
      ...text,
      path,
      files: files.map((file) => ({
        path: file.path.slice(start),
        data: (contents.get(file.id) ?? Buffer.alloc(0)).toString('base64'),
        ...(file.kind === 'executable' ? { executable: true as const } : {}),
      })),
    };
  });
}

async function findPlace(
  { commit }: ReadOptions,
  objects: GitObjects,
  place: SkillSpec['place'],
): Promise<SkillPlace | string> {
  if ('path' in place) {
    const folder = place.path.slice(0, Math.max(0, place.path.lastIndexOf('/')));
    const entries = await objects.list(commit, [folder === '' ? place.path : folder]);
    return findSkill(entries, place.path) ?? `there is no file ${place.path} in the repository`;
  }
  const entries = await objects.list(commit, skillFolders);
  const found = findSkills(entries).find(({ folder }) => folder === place.name);
  return found ?? `the repository has no skill ${place.name} in ${skillFolders.join(', ')}`;
}
