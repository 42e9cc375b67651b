import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newFolder } from './support/close-at-end.ts';
import { keepPackages } from './support/kept-packages.ts';

let caches: string;
beforeEach(() => {
  caches = newFolder();
  vi.stubEnv('XDG_CACHE_HOME', caches);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

const writing = (content: string) => async (folder: string) => writeFileSync(path.join(folder, 'a'), content);

test('packages are installed once for the same inputs, and again for other inputs', async () => {
  const contents: string[] = [];
  for (const [input, content] of [['x', 'first'] as const, ['x', 'second'] as const, ['y', 'third'] as const]) {
    const { folder, remove } = await keepPackages([input], writing(content));
    await remove();
    contents.push(readFileSync(path.join(folder, 'a'), 'utf8'));
  }
  expect(contents).toEqual(['first', 'first', 'third']);
});

test('a failed installation is not stored', async () => {
  const failing = keepPackages(['x'], async (folder) => {
    await writing('part')(folder);
    throw new Error('no registry');
  });
  await expect(failing).rejects.toThrow('no registry');
  expect(readdirSync(path.join(caches, 'runyard-tests'))).toEqual([]);
});

test('packages are installed in a temporary folder if the cache folder of the user cannot be written', async () => {
  writeFileSync(path.join(caches, 'runyard-tests'), '');
  const { folder, remove } = await keepPackages(['x'], writing('here'));
  expect(readFileSync(path.join(folder, 'a'), 'utf8')).toBe('here');
  await remove();
  expect(() => readdirSync(folder)).toThrow('ENOENT');
});
