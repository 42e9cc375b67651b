import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { findLongFiles } from './checks/long-files.ts';
import { systemPackageNames } from './checks/system-packages.ts';

const root = path.resolve(import.meta.dirname, '..');
const program = path.join(root, 'bin/test');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

test.each([
  [['--help'], 0, 'stdout', /^usage: bin\/test \[--filter TEXT\] \[--server\]\n/],
  [['--filter'], 2, 'stderr', /^usage: /],
  [['--bogus'], 2, 'stderr', /^bin\/test: unknown argument --bogus\nusage: /],
] as const)('bin/test %j prints its usage and runs nothing', (words, code, stream, text) => {
  const ended = spawnSync(program, words, { encoding: 'utf8', timeout: 60_000 });
  expect(ended.status).toBe(code);
  expect(ended[stream]).toMatch(text);
});

test('bin/test-long runs each test file of which bin/test runs nothing or only a part', () => {
  const found = findLongFiles();
  expect(found, 'a file of the list').toContain('test/adoption.test.ts');
  expect(found, 'a file with a tag').toContain('test/npm-package.test.ts');
  expect(found, 'a file whose suite has a tag').toContain('test/model-runs.test.ts');
  expect(found, 'a file without a tag').not.toContain('test/egress.test.ts');
});

test('CONTRIBUTING.md lists the system packages that bin/test installs', () => {
  const list =
    /the system packages that the tests use: ([^.]+(?:\.io[^.]+)?)\./.exec(read('CONTRIBUTING.md'))?.[1] ?? '';
  expect(list.split(/,\s+/)).toEqual(systemPackageNames);
});

test('the README, package.json and bin/prepare.sh name the same oldest version of Node', () => {
  const [, oldest] = />=(\d+)/.exec(JSON.parse(read('package.json')).engines.node) ?? [];
  expect(read('README.md')).toContain(`Node ${oldest} or newer`);
  expect(read('bin/prepare.sh')).toContain(`install Node ${oldest} or newer (https://nodejs.org), then`);
});

test('the workflow and the development container start programs of this repository', () => {
  const started = [read('.github/workflows/checks.yml'), read('.devcontainer/devcontainer.json')].map(
    (text) => /(?:\.ci|bin)\/[a-z-]+/.exec(text)?.[0] ?? '',
  );
  for (const file of started) expect(spawnSync('test', ['-x', path.join(root, file)]).status, file).toBe(0);
});
