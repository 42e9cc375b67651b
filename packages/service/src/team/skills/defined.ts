/** Reads skills that are part of the definition of a factory. */

import { maxSkillBytes, maxSkillFiles } from '@runyard/contract/limits';
import type { DefinedSkill } from '@runyard/definitions/defined-skill';
import { tooLarge } from './find-skills.ts';
import { parseSkill } from './front-matter.ts';
import type { SkillBundle } from './read-repository.ts';

/** A file of a definition. */
export interface SkillSource {
  readonly path: string;
  readonly text: string;
}

/**
 * Reads a skill of a factory of the team, in a revision of the factory's definition. Returns null if the team has no such factory, or if
 * the factory has no such skill.
 */
export type ReadDefinedSkill = (
  teamId: string,
  skill: DefinedSkill,
  /** Revision of the definition; absent: the present revision. */
  revision: number | undefined,
) => Promise<{ readonly version: number; readonly files: readonly SkillSource[] } | null>;

/**
 * Returns the skill whose SKILL.md has this path, or the reason why it cannot be used. `all`: all files of the definition; only the files
 * in the folder of the skill are used. Definitions store no file modes, so a file that begins with `#!` counts as executable.
 */
export function bundleOf(path: string, all: readonly SkillSource[]): SkillBundle | string {
  const folder = path.slice(0, -'SKILL.md'.length);
  const files = all.filter((file) => file.path.startsWith(folder));
  if (files.length > maxSkillFiles) return `has more than ${maxSkillFiles} files in its folder`;
  const own = files.find((file) => file.path === path);
  if (own === undefined) return 'is not there';
  const contents = files.map(({ text }) => Buffer.from(text));
  if (contents.reduce((sum, { length }) => sum + length, 0) > maxSkillBytes) return tooLarge;
  const text = parseSkill(Buffer.from(own.text), folder.split('/').at(-2) ?? null);
  if (typeof text === 'string') return text;
  return {
    ...text,
    path,
    files: files.map((file, index) => ({
      path: file.path.slice(folder.length),
      data: (contents[index] ?? Buffer.alloc(0)).toString('base64'),
      ...(file.text.startsWith('#!') ? { executable: true as const } : {}),
    })),
  };
}
