import { createByteMask } from '@runyard/system/redaction/mask-bytes';
import { createRedactor } from '@runyard/system/redaction/redactor';
import type { SkillBundle } from './read-repository.ts';

/**
 * Returns the skill without these secrets in its texts and files: a person who can push to its repository may have copied them there.
 */
export function withoutValues<T extends SkillBundle>(skill: T, values: readonly string[]): T {
  if (values.length === 0) return skill;
  const redactor = createRedactor(values);
  const mask = createByteMask(values);
  return {
    ...skill,
    description: redactor.whole(skill.description),
    body: redactor.whole(skill.body),
    files: skill.files.map((file) => ({
      ...file,
      path: redactor.whole(file.path),
      data: mask.whole(Buffer.from(file.data, 'base64')).toString('base64'),
    })),
  };
}
