import path from 'node:path';
import { expect, test } from 'vitest';
import { agentBundle } from '../../../../test/support/agent-program.ts';
import { bundleProgram } from './bundle.ts';

test('an agent that waits for a run loads at most 8 files, and a command of the agent in the sandbox loads less than 30 KB', async () => {
  const { files, inputs }: { files: { name: string; text: string }[]; inputs: string[] } = JSON.parse(
    await agentBundle(),
  );
  const texts = new Map(files.map(({ name, text }) => [name, text]));
  /** Returns the file and all files that it loads without a dynamic import. */
  const loadedBy = (name: string, found = new Set<string>()): Set<string> => {
    if (found.has(name)) return found;
    found.add(name);
    const atOnce = (texts.get(name) ?? '').replaceAll(/\.then\(\(\)=>(?:\w+\()?require\("[^"]+"\)/g, '');
    for (const [, other] of atOnce.matchAll(/require\("(\.[^"]+)"\)/g))
      loadedBy(path.join(path.dirname(name), other ?? ''), found);
    return found;
  };
  const part = (name: string) => [...texts.keys()].find((file) => file.startsWith(`parts/${name}-`)) ?? '';
  const bytes = (names: Set<string>) => [...names].reduce((sum, name) => sum + (texts.get(name)?.length ?? 0), 0);
  const waiting = loadedBy(part('wait'), loadedBy('parts/main.cjs'));
  expect(bytes(waiting)).toBeGreaterThan(100_000);
  expect(waiting.size).toBeLessThanOrEqual(8);
  expect(bytes(loadedBy(part('report-artifact')))).toBeLessThan(30_000);
  expect(
    inputs.every((input) => input.endsWith('.ts') || input.includes('node_modules')),
    'the inputs are files',
  ).toBe(true);
});

test('a supervisor loads no package, because a machine keeps several supervisors in memory', async () => {
  const { inputs } = await bundleProgram(path.resolve(import.meta.dirname, '../supervisor-process/main.ts'));
  expect(inputs.length).toBeGreaterThan(20);
  expect(inputs.filter((input) => input.includes('node_modules'))).toEqual([]);
});
