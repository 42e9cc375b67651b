import { expect, test } from 'vitest';
import { safeFileName } from './artifacts.ts';

test.each([
  ['report.pdf', 'report.pdf'],
  ['../../etc/passwd', 'passwd'],
  ['..\\..\\boot.ini', 'boot.ini'],
  ['.bashrc', '_bashrc'],
  ['..', '_'],
  ['-rf', '_rf'],
  ['/', 'artifact'],
  ['', 'artifact'],
  ['a\u001b[2Jb\nc.txt', 'ab c.txt'],
  ['C:x?.txt', 'C_x_.txt'],
])('gives the artifact %j the file name %j', (name, expected) => expect(safeFileName(name)).toBe(expected));

test('keeps the extension of a name that is too long for a file system', () => {
  const name = safeFileName(`${'語'.repeat(300)}.txt`);
  expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200);
  expect(name).toMatch(/^語+\.txt$/);
});
