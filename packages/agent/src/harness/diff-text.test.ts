import { expect, test } from 'vitest';
import { withDiffTexts } from './diff-text.ts';

const textOf = (update: unknown) => (update as { content: [{ content: { text: string } }] }).content[0].content.text;
const diff = (oldText: string | null, newText: string) => ({
  toolCallId: 't1',
  content: [{ type: 'diff', path: '/workspace/a.txt', oldText, newText }],
});

test('the text of a diff shows a changed file as a unified diff, and a new file as added lines', () => {
  const header = '--- /workspace/a.txt\n+++ /workspace/a.txt\n';
  expect(textOf(withDiffTexts(diff('a\nb\n', 'a\nc\n')))).toBe(`${header}@@ -1,2 +1,2 @@\n a\n-b\n+c\n`);
  expect(textOf(withDiffTexts(diff(null, 'a\n')))).toBe(`${header}@@ -0,0 +1,1 @@\n+a\n`);
});

test('the text of a diff is only the name of the file if the file is too large to compare', () => {
  expect(textOf(withDiffTexts(diff('x'.repeat(600_000), 'y')))).toBe('[diff of /workspace/a.txt]');
});

test.each([undefined, 7, { content: 'x' }, { content: [null, 7, { type: 'diff' }] }])(
  'reads the diff text %j',
  (update) => {
    expect(() => withDiffTexts(update)).not.toThrow();
  },
);
