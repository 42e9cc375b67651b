import fc from 'fast-check';
import { expect, test } from 'vitest';
import { outputWindow } from './output-window.ts';
import { terminalScreen } from './terminal-screen.ts';

const shown = (...pieces: string[]): string => {
  const screen = terminalScreen();
  for (const piece of pieces) screen.push(piece);
  return screen.end().text;
};

test.each([
  ['plain lines', 'a\n  b  \n\nc', 'a\n  b  \n\nc'],
  ['a progress bar', '\r\u001b[2K\u001b[32m1%\u001b[0m\r\u001b[2K\u001b[32m100%\u001b[0m\nend\n', '100%\nend\n'],
  ['a shorter redraw', 'Downloading 10%\rDone', 'Doneloading 10%'],
  ['a redraw that blanks the line', 'Downloading\r           \rok\n', 'ok\n'],
  ['carriage returns before newlines', 'a\r\nb\r\n', 'a\nb\n'],
  ['backspaces', 'abc\b\b\u001b[Kx', 'ax'],
  ['bars in several lines', 'one 1%\ntwo 1%\n\u001b[2A\rone 9%\n\rtwo 9%\n', 'one 9%\ntwo 9%\n'],
  ['a bar that is removed', 'working\nstep\n\u001b[2A\u001b[Jdone\n', 'done\n'],
  ['titles and links', '\u001b]0;title\u0007\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\ \u001b(Bend', 'link end'],
  ['a cleared screen', 'old\n\u001b[H\u001b[2Jnew\n', 'new\n'],
  ['moves of the cursor', 'abc\u001b[2Dx\u001b[1Gy\u001b[5Cz', 'yxc   z'],
  ['characters of two units', '\u{1F600}\u{1F600}b\r\u{1F601}', '\u{1F601}\u{1F600}b'],
  ['control characters', 'a\u0007b\u007fc\td\u001b', 'abc\td'],
])('shows %s', (_, output, expected) => {
  for (let cut = 0; cut <= output.length; cut += 1)
    if (output.slice(0, cut).isWellFormed()) expect(shown(output.slice(0, cut), output.slice(cut))).toBe(expected);
});

test('the screen shows an output without control characters unchanged', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme-ascii' }), { maxLength: 30 }), (lines) => {
      expect(shown(lines.join('\n'))).toBe(lines.join('\n'));
    }),
    { numRuns: 50 },
  );
  const many = Array.from({ length: 1000 }, (_, index) => `line ${index}`).join('\n');
  expect(shown(many)).toBe(many);
  const long = 'z'.repeat(20_000);
  expect(shown(`a\n${long}`, `${long}\nb`)).toBe(`a\n${long}${long}\nb`);
});

test('the screen keeps the head and the tail of a long output, and the size of the part between them', () => {
  const screen = terminalScreen(outputWindow(2_000, 2_000));
  for (let line = 0; line < 100_000; line += 1) screen.push(`\r${line % 100}%\rline ${line}\n`);
  const { text, leftOut } = screen.end();
  expect(text).toMatch(/^line 0\nline 1\n/);
  expect(text).toMatch(/line 99998\nline 99999\n$/);
  expect(text).not.toContain('%');
  expect(leftOut.lines).toBeGreaterThan(99_000);
});

test('the screen takes time in proportion to the size of a hostile output', () => {
  const before = process.threadCpuUsage().user;
  for (const part of ['\u001b]', '\u001b[', 'x\r', '\u001b[9999C.\u001b[999A', '\u001b[1A\n', '\u001b[2J'])
    shown('y'.repeat(100_000), part.repeat(20_000), '\u001b[A', 'z'.repeat(100_000));
  expect(process.threadCpuUsage().user - before).toBeLessThan(5_000_000);
});
