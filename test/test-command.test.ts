import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { filesInPart, longFiles } from './checks/test-files.ts';

const program = path.join(import.meta.dirname, '../bin/test');

test.each([
  [['--help'], 0, 'stdout', /^usage: bin\/test \[--filter TEXT\] \[--server\]\n/],
  [['--filter'], 2, 'stderr', /^usage: /],
  [['--bogus'], 2, 'stderr', /^bin\/test: unknown argument --bogus\nusage: /],
] as const)('bin/test %j prints its usage and runs nothing', (words, code, stream, text) => {
  const ended = spawnSync(program, words, { encoding: 'utf8', timeout: 10_000 });
  expect(ended.status).toBe(code);
  expect(ended[stream]).toMatch(text);
});

test('bin/test-long runs each test file of which bin/test runs nothing or only a part', () => {
  const words = readFileSync(`${program}-long`, 'utf8').split(/[\s;]+/);
  expect([...longFiles, ...filesInPart].filter((file) => !words.includes(file.replace(/\.test\.ts$/, '')))).toEqual([]);
});
