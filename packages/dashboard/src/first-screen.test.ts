/** Measures the size of the files that a browser loads before it shows the list of runs. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

interface Chunk {
  readonly file: string;
  readonly src?: string;
  readonly isEntry?: true;
  readonly imports?: readonly string[];
  readonly css?: readonly string[];
}

const dist = path.join(import.meta.dirname, '../dist');
const maxScriptBytes = 150 * 1024;
const maxStyleBytes = 20 * 1024;

test.skipIf(!existsSync(dist))('the first screen loads at most 150 KB of script and 20 KB of style, compressed', () => {
  const chunks: Record<string, Chunk> = JSON.parse(readFileSync(path.join(dist, '.vite/manifest.json'), 'utf8'));
  const loaded = new Set<string>();
  const load = (name: string): void => {
    const chunk = chunks[name];
    if (chunk === undefined || loaded.has(name)) return;
    loaded.add(name);
    for (const each of chunk.imports ?? []) load(each);
  };
  load('index.html');
  load('src/screens/runs/runs-screen.tsx');
  const files = [...loaded].flatMap((name) => chunks[name] ?? []);
  const sizeOf = (names: readonly string[]): number =>
    names.reduce((sum, name) => sum + gzipSync(readFileSync(path.join(dist, name))).length, 0);
  expect(files.length).toBeGreaterThan(2);
  expect(sizeOf(files.map(({ file }) => file))).toBeLessThan(maxScriptBytes);
  expect(sizeOf([...new Set(files.flatMap(({ css }) => css ?? []))])).toBeLessThan(maxStyleBytes);
  const script = files.map(({ file }) => readFileSync(path.join(dist, file), 'utf8')).join('\n');
  expect(script, 'zod is not in the first screen').not.toContain('ZodError');
});
