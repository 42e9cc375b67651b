import { expect, test } from 'vitest';
import { titleOf } from './compose-run.ts';

test.each([
  ['\n\nSay hello.\nThen stop.', 'Say hello.'],
  ['# Fix the test\n\nIt fails.', 'Fix the test'],
  ['###\t Deep heading', 'Deep heading'],
  ['#42 is broken', '#42 is broken'],
  ['```sh\nmake test\n```', 'make test'],
  ['```\n\n  npm ci\n```', 'npm ci'],
  ['```make``` fails', '```make``` fails'],
  ['```', '```'],
  ['# \n\ntext', '#'],
  ['x'.repeat(200), 'x'.repeat(80)],
])('a run with the prompt %j gets the title %j', (prompt, title) => {
  expect(titleOf(prompt)).toBe(title);
});
