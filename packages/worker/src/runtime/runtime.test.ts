import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { makeRuntime } from './runtime.ts';

const log = pino({ level: 'silent' });
let stateRoot: string;
let entry: string;
beforeEach(async () => {
  stateRoot = newFolder();
  await mkdir(path.join(stateRoot, 'source'));
  entry = path.join(stateRoot, 'source/main.ts');
  await writeFile(path.join(stateRoot, 'source/lazy.ts'), `export const lazy: string = 'lazy';\n`);
  await writeFile(entry, `void import('./lazy.ts').then(({ lazy }) => console.log(lazy, ...process.argv.slice(2)));\n`);
});

test('the agent and report-artifact run from the runtime, without the source files', async () => {
  const folder = await makeRuntime({ stateRoot, entry, log });
  await rm(path.join(stateRoot, 'source'), { recursive: true });
  const run = (program: string, ...args: string[]): string =>
    execFileSync(path.join(folder, program), args, { encoding: 'utf8', env: {} });
  expect(run('bin/node', path.join(folder, 'agent/main.cjs'), 'a')).toBe('lazy a\n');
  expect(run('bin/report-artifact', 'a file')).toBe('lazy report-artifact a file\n');
});

test('makeRuntime returns the existing runtime, and makes a new one if the contents of a source file have changed', async () => {
  const first = await makeRuntime({ stateRoot, entry, log });
  const { mtimeMs } = await stat(path.join(first, 'agent/main.cjs'));
  expect(await makeRuntime({ stateRoot, entry, log })).toBe(first);
  // The source file gets a new time but keeps its contents. So the agent is bundled again, but the result is the same folder.
  await utimes(path.join(stateRoot, 'source/lazy.ts'), 1, 1);
  expect(await makeRuntime({ stateRoot, entry, log })).toBe(first);
  expect((await stat(path.join(first, 'agent/main.cjs'))).mtimeMs).toBe(mtimeMs);
  await writeFile(path.join(stateRoot, 'source/lazy.ts'), `export const lazy: string = 'other';\n`);
  const second = await makeRuntime({ stateRoot, entry, log });
  expect(second).not.toBe(first);
  expect((await readdir(path.join(stateRoot, 'runtime'))).sort()).toEqual([path.basename(second), 'stamp.json'].sort());
});

test('makeRuntime removes an unfinished runtime of a killed process', async () => {
  const abandoned = path.join(stateRoot, 'runtime/.making-0000/agent');
  await mkdir(abandoned, { recursive: true });
  const folder = await makeRuntime({ stateRoot, entry, log });
  expect((await readdir(path.dirname(folder))).sort()).toEqual([path.basename(folder), 'stamp.json'].sort());
});

test('in a folder that workers share without a lock, makeRuntime removes only runtimes that were not used for 30 days', async () => {
  const first = await makeRuntime({ stateRoot, entry, shared: true, log });
  await writeFile(path.join(stateRoot, 'source/lazy.ts'), `export const lazy: string = 'other';\n`);
  const second = await makeRuntime({ stateRoot, entry, shared: true, log });
  await expect(stat(first)).resolves.toBeDefined();
  const longAgo = new Date(Date.now() - 31 * 24 * 3_600_000);
  await utimes(first, longAgo, longAgo);
  await writeFile(path.join(stateRoot, 'source/lazy.ts'), `export const lazy: string = 'third';\n`);
  await makeRuntime({ stateRoot, entry, shared: true, log });
  await expect(stat(first)).rejects.toThrow('ENOENT');
  await expect(stat(second)).resolves.toBeDefined();
});

test('all users can read the runtime, but only its owner can write to it', async () => {
  const folder = await makeRuntime({
    stateRoot,
    entry,
    rehearse: (making) => writeFile(path.join(making, 'agent/cache/entry'), 'compiled', { mode: 0o600 }),
    log,
  });
  for (const name of [
    '',
    'agent',
    'agent/main.cjs',
    'agent/cache',
    'agent/cache/entry',
    'bin',
    'bin/report-artifact',
    'node',
  ]) {
    const { mode } = await stat(path.join(folder, name));
    expect([name, mode & 0o022, mode & 0o044]).toEqual([name, 0, 0o044]);
  }
});

test("the file of the agent's Node in the runtime is unreadable, so that the agent's process cannot be traced", async () => {
  const folder = await makeRuntime({ stateRoot, entry, log });
  const { mode, nlink } = await stat(path.join(folder, 'agent/node'));
  expect([mode & 0o777, nlink]).toEqual([0o111, 1]);
  expect((await stat(process.execPath)).mode & 0o005).toBe(0o005);
});

test('makeRuntime makes a runtime without compiled code if the rehearsal fails', async () => {
  const folder = await makeRuntime({ stateRoot, entry, rehearse: () => Promise.reject(new Error('no')), log });
  expect(await readdir(path.join(folder, 'agent/cache'))).toEqual([]);
});

test('the error about a source that cannot be bundled names the source file', async () => {
  await writeFile(entry, 'import { nothing } from "./missing.ts";\nnothing();\n');
  await expect(makeRuntime({ stateRoot, entry, log })).rejects.toThrow(/main\.ts.*cannot be bundled[\s\S]*missing\.ts/);
  expect(await readFile(entry, 'utf8')).toContain('missing');
});
