import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { findGvisor } from './find-gvisor.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder();
});

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
