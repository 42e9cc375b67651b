import { expect, test } from 'vitest';
import { planLines } from './plan-lines.ts';

test('shows each change, and the members of those that change something', () => {
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

test('writes nothing that a terminal would obey, and cuts long values', () => {
  const [, line = ''] = planLines([
    {
      kind: 'agent',
      name: 'a',
      action: 'change',
      members: [{ member: 'prompt', before: '\u009b31m', after: 'x'.repeat(1_000) }],
    },
  ]);
  expect(line).not.toMatch(/\p{Cc}/u);
  expect(line.length).toBeLessThan(200);
});
