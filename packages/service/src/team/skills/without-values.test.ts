import { expect, test } from 'vitest';
import { withoutValues } from './of-run.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const skill = {
  name: 'deploy',
  description: 'Logs in with hunter2-hunter2.',
  body: 'Use hunter2-hunter2, or aHVudGVyMi1odW50ZXIy.',
  path: 'skills/deploy/SKILL.md',
  files: [
    { path: 'SKILL.md', data: base64('name: deploy\nUse hunter2-hunter2.') },
    { path: 'notes/hunter2-hunter2.txt', data: base64('nothing'), executable: true as const },
  ],
};

test('the values of secrets are removed from the texts, files and file names of a skill', () => {
  const clean = withoutValues(skill, ['hunter2-hunter2']);
  expect(clean).toMatchObject({
    name: 'deploy',
    description: 'Logs in with «redacted».',
    body: 'Use «redacted», or «redacted».',
    path: 'skills/deploy/SKILL.md',
  });
  expect(clean.files).toEqual([
    { path: 'SKILL.md', data: base64(`name: deploy\nUse ${'*'.repeat(15)}.`) },
    { path: 'notes/«redacted».txt', data: base64('nothing'), executable: true },
  ]);
});

test('a skill is unchanged if the run has no secrets', () => {
  expect(withoutValues(skill, [])).toBe(skill);
});
