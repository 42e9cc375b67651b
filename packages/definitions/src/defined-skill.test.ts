import { describe, expect, test } from 'vitest';
import { definedSkillSpec, isDefinedSkill, isSkillPath, parseDefinedSkill } from './defined-skill.ts';

const factoryUid = 'abcdefghij0123456789AB';

describe('the spec of a skill of a definition', () => {
  test.each(['skills/deploy/SKILL.md', 'agents/reviewer/skills/style/SKILL.md'])(
    'contains the factory and the path %s',
    (path) => {
      expect(isSkillPath(path)).toBe(true);
      expect(parseDefinedSkill(definedSkillSpec({ factoryUid, path }))).toEqual({ factoryUid, path });
    },
  );

  test.each([
    'acme/site:skills/deploy/SKILL.md',
    'factory/abcdefghij0123456789AB:skills/deploy/SKILL.md',
    '@factory/abc:skills/deploy/SKILL.md',
    `@factory/${factoryUid}:skills/deploy`,
    `@factory/${factoryUid}:skills/../factory.yaml/SKILL.md`,
    `@factory/${factoryUid}:skills/deploy/skills/inner/SKILL.md`,
    `@factory/${factoryUid}:agents/a/b/skills/deploy/SKILL.md`,
    `@factory/${factoryUid}:skills/deploy/SKILL.md\n`,
  ])('is not %j', (spec) => {
    expect(isDefinedSkill(spec)).toBe(false);
    expect(parseDefinedSkill(spec)).toBeUndefined();
  });
});
