import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { presets } from '@runyard/contract/agent/harness-presets/presets';
import type { HarnessConfig } from '@runyard/contract/runs/config';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { checkProgram } from './check-program.ts';
import { findProgram, isOlder } from './find-program.ts';

let dir: string;
beforeEach(() => {
  dir = newFolder();
});

/** Installs a package in the same way as `npm install --global --prefix`: the command is a link to a file of the package. */
async function installCodex(version: string): Promise<void> {
  const folder = path.join(dir, 'lib/node_modules/@agentclientprotocol/codex-acp');
  await mkdir(path.join(folder, 'dist'), { recursive: true });
  await writeFile(path.join(folder, 'package.json'), JSON.stringify({ name: presets.codex.program.package, version }));
  await writeFile(path.join(folder, 'dist/index.js'), '#!/bin/sh\n');
  await chmod(path.join(folder, 'dist/index.js'), 0o755);
  await mkdir(path.join(dir, 'bin'), { recursive: true });
  await symlink(path.join(folder, 'dist/index.js'), path.join(dir, 'bin/codex-acp'));
}

const check = (harness: HarnessConfig, memoryMb = 8192, isInImage = false) =>
  checkProgram(harness, { harnessDir: dir, memoryMb, isInImage });

test('checkProgram refuses a harness whose program is not installed, and the error contains the install command', async () => {
  await expect(check({ type: 'codex' })).rejects.toMatchObject({
    phase: 'prepare',
    reason: 'harness_missing',
    message: expect.stringContaining(`npm install --global --prefix ${dir} @agentclientprotocol/codex-acp@`),
  });
});

test('findProgram returns a program with its version, and checkProgram refuses the program if it is too old', async () => {
  await installCodex('1.9.9');
  expect(await findProgram(presets.codex, dir)).toEqual({ file: path.join(dir, 'bin/codex-acp'), version: '1.9.9' });
  await expect(check({ type: 'codex' })).rejects.toMatchObject({ reason: 'harness_too_old' });
});

test('checkProgram refuses a harness that needs more memory than a sandbox has', async () => {
  await installCodex(presets.codex.program.version);
  await expect(check({ type: 'codex' }, 256)).rejects.toMatchObject({
    reason: 'harness_needs_memory',
    message: expect.stringContaining('RUNYARD_SANDBOX_MEMORY_MB'),
  });
  await expect(check({ type: 'codex' })).resolves.toBeUndefined();
});

test('checkProgram checks only the memory if the program comes from an image', async () => {
  await expect(check({ type: 'codex' }, 8192, true)).resolves.toBeUndefined();
  await expect(check({ type: 'codex' }, 256, true)).rejects.toMatchObject({ reason: 'harness_needs_memory' });
});

test('checkProgram accepts the built-in harness, and every harness for which the run names a command', async () => {
  await check({});
  await check({ type: 'acp', command: ['a'] });
  await check({ type: 'codex', command: ['my-codex'] });
});

test.each([
  ['1.2.3', '1.2.3', false],
  ['1.2.3', '1.3.0', true],
  ['1.10.0', '1.9.0', false],
  ['2.0.0-preview.1', '2.0.0', false],
  ['0.9', '1.0.0', true],
])('isOlder compares version %s with %s by their numbers and returns %s', (version, least, older) => {
  expect(isOlder(version, least)).toBe(older);
});
