/** Names of the skills that the definition of a factory contains, in `skills/` and `agents/<name>/skills/`. */

const path = '(?:agents/[^/]+/)?skills/[^/]+/SKILL\\.md';
const pathPattern = new RegExp(`^${path}$`);
const pattern = new RegExp(`^@factory/([A-Za-z0-9]{22}):(${path})$`);

/** A skill in the definition that was applied to a factory. */
export interface DefinedSkill {
  readonly factoryUid: string;
  /** Of its SKILL.md. */
  readonly path: string;
}

/**
 * Returns the spec by which runs name the skill. It cannot be mistaken for the spec of a repository, because the name of an owner cannot
 * contain `@`.
 */
export const definedSkillSpec = ({ factoryUid, path }: DefinedSkill): string => `@factory/${factoryUid}:${path}`;

/** Parses the spec of a skill of a definition; undefined if it is the spec of another kind of skill, or not a spec. */
export function parseDefinedSkill(spec: string): DefinedSkill | undefined {
  const [, factoryUid, path] = pattern.exec(spec) ?? [];
  return factoryUid === undefined || path === undefined ? undefined : { factoryUid, path };
}

/** Returns true for the path of a skill's own SKILL.md, and false for a SKILL.md in a deeper folder of a skill. */
export const isSkillPath = (file: string): boolean => pathPattern.test(file);

/** Returns true for the spec of a skill of a definition. */
export const isDefinedSkill = (spec: string): boolean => pattern.test(spec);
