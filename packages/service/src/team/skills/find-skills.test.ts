import { expect, test } from 'vitest';
import { findSkill, findSkills } from './find-skills.ts';
import type { TreeEntry } from './git/objects.ts';

const entry = (path: string, kind: TreeEntry['kind'] = 'file'): TreeEntry => ({ kind, id: '0'.repeat(40), path });
const range = (count: number) => Array.from({ length: count }, (_, n) => n);

test('skills are found in the order of their folders, each with its files', () => {
  const paths = ['.claude/skills/b/SKILL.md', 'skills/a-b/SKILL.md', 'skills/a/SKILL.md', 'skills/a/x/y', 'skills/a0'];
  const entries = paths.map((path) => entry(path));
  for (const given of [entries, entries.toReversed()])
    expect(findSkills(given).map(({ folder, files }) => [folder, files.map(({ path }) => path)])).toEqual([
      ['a-b', ['skills/a-b/SKILL.md']],
      ['a', ['skills/a/SKILL.md', 'skills/a/x/y']],
      ['b', ['.claude/skills/b/SKILL.md']],
    ]);
  expect(findSkill(entries, 'skills/a')).toBeUndefined();
});

test.each([
  ['each in a folder of its own', (n: number) => `skills/a${n}/SKILL.md`],
  ['each in the folder of the previous skill', (n: number) => `skills/${'a/'.repeat(n % 100)}${n}/SKILL.md`],
  [
    'beside files',
    (n: number) => (n < 100 ? `skills/${'a/'.repeat(n + 1)}SKILL.md` : `skills/${'a/'.repeat(100)}${n}`),
  ],
])('the search takes little time for 100,000 skills %s', (_, pathOf) => {
  const entries = range(100_000).map((n) => entry(pathOf(n)));
  const before = process.threadCpuUsage();
  const found = findSkills(entries);
  const { user } = process.threadCpuUsage(before);
  expect(found).toHaveLength(100);
  expect(user / 1e3, 'milliseconds').toBeLessThan(4_000);
});
