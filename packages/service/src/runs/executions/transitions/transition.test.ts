import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const sources = path.resolve(import.meta.dirname, '../../..');

test('no SQL statement outside of transition.ts contains a list of phases', () => {
  const files = globSync('**/*.ts', { cwd: sources }).filter((file) => !/\.test\.ts$|^platform\/store\//.test(file));
  const list = /\bphase\s+(?:NOT\s+)?IN\s*\(\s*'|\bphase\s*(?:=\s*ANY|<>\s*ALL)\b/i;
  const faults = files.filter((file) => list.test(readFileSync(path.join(sources, file), 'utf8')));
  expect(faults, 'use a list of runs/executions/transitions/transition.ts').toEqual([]);
});
