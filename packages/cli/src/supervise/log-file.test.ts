import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readableLogLine, readLogTail, sizeOf } from './log-file.ts';

let file: string;
beforeEach(() => {
  file = path.join(mkdtempSync(path.join(tmpdir(), 'runyard-log-')), 'a.log');
});
afterEach(() => rmSync(path.dirname(file), { recursive: true }));

test('readLogTail returns only lines after the given position, and only the message of a JSON line', () => {
  writeFileSync(file, 'old\n');
  const from = sizeOf(file);
  writeFileSync(file, '{"level":50,"msg":"port taken"}\nplain words\n', { flag: 'a' });
  expect(readLogTail(file, from)).toBe('port taken\nplain words');
});

test('readLogTail reads only the end of a long log', () => {
  writeFileSync(
    file,
    `${'x'.repeat(100_000)}\n${Array.from({ length: 50 }, (_, index) => `line ${index}`).join('\n')}\n`,
  );
  expect(readLogTail(file, 0, 3)).toBe('line 47\nline 48\nline 49');
});

test('readLogTail returns an empty text for a missing log', () => {
  expect(readLogTail(path.join(path.dirname(file), 'none.log'), 0)).toBe('');
});

test('readableLogLine adds the message of the error in a log line', () => {
  expect(readableLogLine('{"msg":"could not start","err":{"message":"disk full"}}')).toBe('could not start: disk full');
  expect(readableLogLine('{"half":')).toBe('{"half":');
});
