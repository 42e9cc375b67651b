import { expect, test } from 'vitest';
import { findMissing, readLockfile } from './checks/lockfile.ts';

test('the lockfile has the optional packages of all platforms, which npm ci needs (if this fails: node test/checks/lockfile.ts)', () => {
  expect(findMissing(readLockfile())).toEqual([]);
});

test('the lockfile names no other registry than the default of npm, so that npm uses the configured registry', () => {
  const hosts = JSON.stringify(readLockfile()).match(/"resolved":"https?:\/\/[^/"]+/g) ?? [];
  expect(hosts.filter((host) => !host.endsWith('//registry.npmjs.org'))).toEqual([]);
});

test('the check of the lockfile looks for an optional package in the top folder and below the package that needs it', () => {
  const packages = {
    '': {},
    'node_modules/a': { optionalDependencies: { 'a-linux-x64': '1.0.0', 'a-darwin-arm64': '1.0.0' } },
    'node_modules/a/node_modules/a-linux-x64': { version: '1.0.0' },
    'node_modules/b/node_modules/c': { optionalDependencies: { d: '2.0.0' } },
    'node_modules/b/node_modules/d': { version: '2.0.0' },
  };
  expect(findMissing({ packages }).map(({ name }) => name)).toEqual(['a-darwin-arm64']);
});
