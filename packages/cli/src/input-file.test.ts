import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { readInput } from './input-file.ts';
import { jsonFrom } from './json-file.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'runyard-input-'));

test('reads a file', () => {
  writeFileSync(path.join(folder, 'a.txt'), 'hello');
  expect(readInput(path.join(folder, 'a.txt')).toString()).toBe('hello');
});

test.each([readInput, jsonFrom])('says plainly that a file is missing or a folder: %#', (read) => {
  const missing = path.join(folder, 'missing');
  expect(() => read(missing)).toThrow(`there is no file ${missing}`);
  expect(() => read(folder)).toThrow(`${folder} is a folder; name a file`);
});
