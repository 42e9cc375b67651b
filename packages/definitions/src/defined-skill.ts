/**
 * Converts between a skill in the definition of a factory and the spec by which runs name this skill. Such a skill is a folder in
 * `skills/` or `agents/<name>/skills/`.
 */

const path = '(?:agents/[^/]+/)?skills/[^/]+/SKILL\\.md';
const pathPattern = new RegExp(`^${path}$`);
const pattern = new RegExp(`^@factory/([A-Za-z0-9]{22}):(${path})$`);

/** A skill in the definition that was applied to a factory. */
export interface DefinedSkill {
  readonly factoryUid: string;
  /** Path of the skill's SKILL.md. */
  readonly path: string;
}

/**
 * Returns the spec by which runs name the skill. The spec differs from the spec of a skill in a repository (`owner/name:…`), because
 * the name of an owner cannot contain `@`.
 */
export const definedSkillSpec = ({ factoryUid, path }: DefinedSkill): string => `@factory/${factoryUid}:${path}`;

/** Parses the spec of a skill in a definition. Returns undefined if `spec` names another kind of skill or is not a spec. */
export function parseDefinedSkill(spec: string): DefinedSkill | undefined {
  const [, factoryUid, path] = pattern.exec(spec) ?? [];
  return factoryUid === undefined || path === undefined ? undefined : { factoryUid, path };
}

/** Returns true for the path of a skill's own SKILL.md, and false for a SKILL.md in a deeper folder of a skill. */
export const isSkillPath = (file: string): boolean => pathPattern.test(file);

/** Returns true for the spec of a skill of a definition. */
export const isDefinedSkill = (spec: string): boolean => pattern.test(spec);
