import type { FactoryChange } from '@runyard/contract/factories/factory-definitions';
import { expect, test } from 'vitest';
import { planLines } from './plan-lines.ts';

/** Returns the lines that show the change of one member. */
const linesOf = (member: string, before: unknown, after: unknown): string[] =>
  planLines([{ kind: 'automation', name: 'a', action: 'change', members: [{ member, before, after }] }]).slice(1);

test('planLines returns each change, and the members that differ if the change is an update', () => {
  expect(
    planLines([
      { kind: 'factory', name: 'factory', action: 'create' },
      { kind: 'agent', name: 'old', action: 'delete' },
      {
        kind: 'webhook',
        name: 'alerts',
        action: 'change',
        members: [
          { member: 'enabled', before: true, after: false },
          { member: 'secret' },
          { member: 'model', after: 'a' },
        ],
      },
    ]),
  ).toEqual([
    '+ factory',
    '- agent old',
    '~ webhook alerts',
    '    enabled: true → false',
    '    secret: gets the value that the team has stored',
    '    model: nothing → "a"',
  ]);
});

const trigger = (labels: readonly string[], more: object = {}) => ({
  provider: 'github',
  event: 'pull_request',
  filter: { repositories: { in: ['acme/a-repository-with-a-long-name', 'acme/another-one'] }, labels: { in: labels } },
  ...more,
});

test('planLines returns only the parts of a large value that differ', () => {
  expect(linesOf('triggers', [trigger(['ready'])], [trigger(['ready', 'urgent'], { 'x.y': 1 })])).toEqual([
    '    triggers[0].filter.labels.in[1]: nothing → "urgent"',
    '    triggers[0]["x.y"]: nothing → 1',
  ]);
  expect(linesOf('config', { model_id: 'a', skills: [] }, { model_id: 'b', skills: {} })).toEqual([
    '    config.model_id: "a" → "b"',
    '    config.skills: [] → {}',
  ]);
});

test('planLines returns only the lines of a text that differ', () => {
  const before = `Look at the alert.\n${'Be careful.\n'.repeat(20)}Write a report.\nSend it.`;
  const after = before.replace('Write a report.', 'Write a report. \nDelete the others.');
  expect(linesOf('prompt', before, after)).toEqual([
    '    prompt, line 22:',
    '      - "Write a report."',
    '      + "Write a report. "',
    '      + "Delete the others."',
  ]);
  expect(linesOf('prompt', before, before.replace('the alert', 'all alerts').replace('Send it', 'Keep it'))).toEqual([
    '    prompt, line 1:',
    '      - "Look at the alert."',
    '      + "Look at all alerts."',
    '    prompt, line 23:',
    '      - "Send it."',
    '      + "Keep it."',
  ]);
  expect(linesOf('prompt', 'a\n', 'a')).toEqual(['    prompt, line 2:', '      - ""']);
});

test('planLines returns the parts around the first difference of two long lines', () => {
  const [line = ''] = linesOf('prompt', `${'same '.repeat(100)}old words`, `${'same '.repeat(100)}new words`);
  expect(line).toBe('    prompt: …same same same same old words" → …same same same same new words"');
});

test('planLines returns at most 40 lines of a text that is replaced, and the number of further lines', () => {
  const lines = linesOf('prompt', 'a\n'.repeat(500), 'b\n'.repeat(500));
  expect(lines).toHaveLength(41);
  expect(lines.at(-1)).toBe('    … and 961 more lines; --json shows all of them');
});

test.each<[string, FactoryChange[]]>([
  [
    'in a value',
    [{ kind: 'agent', name: 'a', action: 'change', members: [{ member: 'prompt', before: '\u009b31m' }] }],
  ],
  [
    'in a line',
    [
      {
        kind: 'agent',
        name: 'a',
        action: 'change',
        members: [{ member: 'prompt', before: 'a', after: 'a\n\u009b31m\u202e' }],
      },
    ],
  ],
  [
    'in a name',
    [
      {
        kind: 'agent',
        name: '\u001b[31m',
        action: 'change',
        members: [{ member: 'config', after: 1, before: { '\u009b': 1 } }],
      },
    ],
  ],
])('planLines returns no control characters from %s', (_, changes) => {
  for (const line of planLines(changes)) {
    expect(line).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(line.length).toBeLessThan(200);
  }
});
