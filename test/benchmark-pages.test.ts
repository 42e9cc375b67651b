import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { benchmarks } from '../bench/benchmarks.ts';

const root = path.resolve(import.meta.dirname, '..');

/** Returns the names of the files in `bench/` that the text mentions. */
const namedIn = (text: string) => [...text.matchAll(/\bbench\/([a-z-]+\.(?:ts|md))\b/g)].map(([, name]) => name ?? '');

function* filesBelow(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const place = path.join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== 'node_modules') yield* filesBelow(place);
    else if (entry.isFile() && /\.(ts|md)$/.test(entry.name)) yield place;
  }
}

test('each benchmark has a page with the last result and the command that repeats the benchmark', () => {
  expect(benchmarks()).toContain('creates.ts');
  for (const name of benchmarks()) {
    const page = path.join(root, 'bench', name.replace(/\.ts$/, '.md'));
    expect([name, existsSync(page) && readFileSync(page, 'utf8').includes(`node bench/${name} --write`)]).toEqual([
      name,
      true,
    ]);
  }
});

test('each benchmark that a page or a source file mentions exists', () => {
  const files = [path.join(root, 'README.md'), path.join(root, 'bin/runyard')];
  for (const folder of ['docs', 'packages', 'bench']) files.push(...filesBelow(path.join(root, folder)));
  const named = files.flatMap((file) => namedIn(readFileSync(file, 'utf8')).map((name) => ({ file, name })));
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(({ name }) => !existsSync(path.join(root, 'bench', name)))).toEqual([]);
});
