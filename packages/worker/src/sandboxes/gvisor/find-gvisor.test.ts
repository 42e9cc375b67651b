import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findGvisor } from './find-gvisor.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'runyard-runsc-'));
});
afterEach(() => rm(folder, { recursive: true }));

const install = async (script: string): Promise<string> => {
  const program = path.join(folder, 'runsc');
  await writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return program;
};

test.each([
  ['systrap', 'echo systrap; echo ptrace; echo kvm'],
  ['ptrace', 'echo ptrace; echo kvm'],
])('findGvisor returns the first runsc on PATH with the platform %s', async (platform, script) => {
  const program = await install(script);
  expect(await findGvisor(`.:${folder}:/usr/bin`)).toEqual({ program, platform });
});

test('findGvisor rejects if runsc does not run on this machine', async () => {
  await install('echo "no such instruction" >&2; exit 132');
  await expect(findGvisor(folder)).rejects.toThrow('no such instruction');
});
