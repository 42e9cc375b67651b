import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { commandSetting, initCommand } from './arguments.ts';

const limits = { nproc: 4000, nofile: 777, fileBytes: 5 * 1024 * 1024 };

/** Shells that are installed as `sh` on some machines. */
const shells = [
  { name: 'sh', program: '/bin/sh', argv0: 'sh', first: [] },
  { name: 'dash', program: '/bin/dash', argv0: 'sh', first: [] },
  { name: 'bash', program: '/bin/bash', argv0: 'sh', first: [] },
  { name: 'busybox', program: '/bin/busybox', argv0: 'busybox', first: ['sh'] },
].filter(({ program }) => existsSync(program));

function run(shell: (typeof shells)[number], given: Parameters<typeof initCommand>[1], command: readonly string[]) {
  const [, ...args] = initCommand('label', given);
  // The test runs without root's right to raise its own limits.
  const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const env = { PATH: '/usr/bin:/bin', ...commandSetting(command) };
  const options = { argv0: shell.argv0, env, encoding: 'utf8', cwd: '/', ...user } as const;
  return spawnSync(shell.program, [...shell.first, ...args], options);
}

describe.each(shells)('init in $name', (shell) => {
  test('gives the command soft and hard limits that it cannot raise', () => {
    const { stdout, status, stderr } = run(shell, { ...limits, dataBytes: 3 * 2 ** 30 }, ['cat', '/proc/self/limits']);
    const rows = [...stdout.matchAll(/^Max (.+?)\s{2,}(\S+)\s+(\S+)/gm)].map(([, name, soft, hard]) => [
      name,
      [soft, hard],
    ]);
    expect([status, stderr]).toEqual([0, '']);
    expect(Object.fromEntries(rows)).toMatchObject({
      processes: ['4000', '4000'],
      'open files': ['777', '777'],
      'file size': ['5242880', '5242880'],
      'core file size': ['0', '0'],
      'data size': ['3221225472', '3221225472'],
    });
  });

  test('sets no memory limit for each process if a cgroup limits their memory together', () => {
    const { stdout } = run(shell, limits, ['cat', '/proc/self/limits']);
    expect(stdout).toMatch(/^Max data size\s+unlimited\s+unlimited/m);
  });

  test('starts nothing if a limit cannot be set', () => {
    const { stdout, stderr, status } = run(shell, { ...limits, nofile: Number.MAX_SAFE_INTEGER }, ['echo', 'started']);
    expect([stdout, status]).toEqual(['', 126]);
    expect(stderr).toMatch(/limit of the sandbox could not be set/);
  });

  test('returns the exit code of the command, with arguments that no shell has changed', () => {
    const odd = 'a \'b\' "c" $HOME `d` \\ ;e\nf*';
    const { stdout, status } = run(shell, limits, ['sh', '-c', 'printf %s "$1"; exit 7', 'sh', odd]);
    expect([stdout, status]).toEqual([odd, 7]);
  });
});
