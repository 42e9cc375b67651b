import { expect, test } from 'vitest';
import { isTrustedPath, matchesTrustedPath } from './trusted-paths.ts';

test.each([
  ['test', 'test', true],
  ['test/a/b', 'test', true],
  ['tests', 'test', false],
  ['test', 'test/**', true],
  ['test/.hidden/a', 'test/**', true],
  ['a/test/b', 'test/**', false],
  ['package.json', '**/package.json', true],
  ['.evil/package.json', '**/package.json', true],
  ['package.json/x', '**/package.json', true],
  ['package.jsonx', '**/package.json', false],
  ['src/a.test.ts', 'src/*.test.ts', true],
  ['src/b/a.test.ts', 'src/*.test.ts', false],
  ['src/b/c/a.test.ts', '**/*.test.ts', true],
  ['.mocharc.js', '?mocharc.*', true],
  ['Test/a', 'test', false],
  ['a/b/c', 'a/**/c', true],
  ['a/c', 'a/**/c', true],
  ['anything', '**', true],
])('the path %s with the pattern %s: %s', (path, pattern, matches) => {
  expect(matchesTrustedPath(path, pattern)).toBe(matches);
});

test('a hostile pattern and a hostile path need little time', () => {
  const began = performance.now();
  const pattern = `${'**/*a*a*a*a*/'.repeat(30)}b`;
  expect(isTrustedPath(pattern)).toBe(true);
  matchesTrustedPath(`${'aaaaaaaaaaaaaaaa/'.repeat(200)}c`, pattern);
  matchesTrustedPath('a'.repeat(4_000), `${'*a'.repeat(240)}b`);
  expect(performance.now() - began).toBeLessThan(1_000);
});
