import { expect, test } from 'vitest';
import { visible } from './visible.ts';

test.each([
  ['a command of several lines', 'echo a\n  echo b\n\n\techo c', 'echo a\n  echo b\n\n\techo c'],
  [
    'characters that draw nothing or act on a terminal',
    'ls\u200d \u{e0041}\u00ad\u206a \u3164\u2800 \u001b[8m;\rx ⚠️ 👩🏽‍🔧',
    'ls[U+200D] [U+E0041][U+00AD][U+206A] [U+3164][U+2800] [U+001B][8m;[U+000D]x ⚠️ 👩🏽‍🔧',
  ],
  ['spaces that move the end out of sight', `echo a${' '.repeat(30_000)}; rm b`, 'echo a[30000 spaces]; rm b'],
  ['other white space that does', `echo a${'\u2003\t'.repeat(30)}; rm b`, 'echo a[60 spaces]; rm b'],
  ['lines that do', `echo a${'\n \t'.repeat(500)}\nrm b`, 'echo a\n[500 empty lines]\nrm b'],
  ['lines of long white space', `echo a\n${' '.repeat(500)}\nrm b`, 'echo a\n[500 spaces]\nrm b'],
  ['indented code', `if a; then\n${' '.repeat(24)}b\n\n\n\nfi`, `if a; then\n${' '.repeat(24)}b\n\n\n\nfi`],
])('shows %s', (_, text, shown) => {
  expect(visible(text)).toBe(shown);
});
