import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { mkdir, rmdir } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { type Freezer, freezerGroups, openFreezer } from './freezer.ts';

const canMakeGroups = (folder: string): boolean => {
  try {
    accessSync(path.join(folder, 'cgroup.procs'), constants.W_OK);
    return true;
  } catch {
    return false;
  }
};

/** The root folders of the kernel's freezers on this machine, with the version of cgroups. */
const roots = (
  [
    [1, '/sys/fs/cgroup/freezer'],
    [2, '/sys/fs/cgroup/unified'],
    [2, '/sys/fs/cgroup'],
  ] as const
).filter(([, root]) => canMakeGroups(root));

describe.each(roots)('the freezer of cgroups version %i', (version, root) => {
  const group = path.join(root, `runyard-freezer-test-${process.pid}`);
  let folder: string;
  let freezer: Freezer;
  let agent: ChildProcess;

  /** Returns a shell command that writes an increasing number into a file for ever. */
  const counting = (name: string) =>
    `sh -c 'n=0; while :; do n=$((n+1)); echo $n > ${path.join(folder, name)}.new; mv ${path.join(folder, name)}.new ${path.join(folder, name)}; sleep 0.01; done'`;
  const count = (name: string): number => {
    try {
      return Number(readFileSync(path.join(folder, name), 'utf8'));
    } catch {
      return 0;
    }
  };
  const isCounting = async (name: string): Promise<boolean> => {
    const before = count(name);
    await new Promise((resolve) => setTimeout(resolve, 150));
    return count(name) > before;
  };

  beforeEach(async () => {
    folder = newFolder();
    await mkdir(group);
    freezer = await openFreezer(version, group);
    agent = spawn('sh', [], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    freezer.add(agent.pid ?? 0);
    agent.stdin?.write(`${counting('one')} &\n`);
    await expect.poll(() => isCounting('one')).toBe(true);
  });
  afterEach(async () => {
    freezer.close();
    process.kill(-(agent.pid ?? 0), 'SIGKILL');
    for (const name of freezerGroups)
      await expect
        .poll(() =>
          rmdir(path.join(group, name)).then(
            () => 'gone',
            () => 'busy',
          ),
        )
        .toBe('gone');
    await rmdir(group);
  });

  test('stops the programs of a waiting agent, also programs that start during the wait, and lets them continue later', async () => {
    freezer.freeze((pid) => pid === agent.pid);
    await expect.poll(() => isCounting('one')).toBe(false);
    agent.stdin?.write(`touch ${path.join(folder, 'agent-works')}; ${counting('two')} &\n`);
    await expect.poll(() => count('two')).toBeGreaterThan(0);
    await expect.poll(() => isCounting('two')).toBe(false);
    expect(await isCounting('one')).toBe(false);
    freezer.thaw();
    await expect.poll(() => isCounting('one')).toBe(true);
    await expect.poll(() => isCounting('two')).toBe(true);
    freezer.freeze((pid) => pid === agent.pid);
    await expect.poll(() => isCounting('one')).toBe(false);
  });

  test('stops programs that endlessly start further programs', async () => {
    agent.stdin?.write(`sh -c 'chain() { echo x >> ${path.join(folder, 'chain')}; chain & }; chain' &\n`);
    const size = () => {
      try {
        return readFileSync(path.join(folder, 'chain')).length;
      } catch {
        return 0;
      }
    };
    await expect.poll(size).toBeGreaterThan(20);
    freezer.freeze((pid) => pid === agent.pid);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const before = size();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(size()).toBe(before);
  });

  test('lets programs continue when their agent has ended, and stops no programs after it was closed', async () => {
    freezer.freeze((pid) => pid === agent.pid);
    await expect.poll(() => isCounting('one')).toBe(false);
    agent.kill('SIGKILL');
    await expect.poll(() => isCounting('one')).toBe(true);
    freezer.close();
    freezer.freeze(() => false);
    await expect.poll(() => isCounting('one')).toBe(true);
  });
});
