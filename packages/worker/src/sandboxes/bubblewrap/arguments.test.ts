import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { commandSetting, initCommand } from './arguments.ts';

const limits = { nproc: 4000, nofile: 777, fileBytes: 5 * 1024 * 1024 };

/** Some machines have this shell as `sh`. The tests run with each shell that is installed here. */
const shells = [
  { name: 'sh', program: '/bin/sh', argv0: 'sh', first: [] },
  { name: 'dash', program: '/bin/dash', argv0: 'sh', first: [] },
  { name: 'bash', program: '/bin/bash', argv0: 'sh', first: [] },
  { name: 'busybox', program: '/bin/busybox', argv0: 'busybox', first: ['sh'] },
].filter(({ program }) => existsSync(program));

function run(shell: (typeof shells)[number], given: Parameters<typeof initCommand>[1], command: readonly string[]) {
  const [, ...args] = initCommand('label', given, false);
  // Does not run as root, because root could raise the limits again.
  const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const env = { PATH: '/usr/bin:/bin', ...commandSetting(command) };
  const options = { argv0: shell.argv0, env, encoding: 'utf8', cwd: '/', ...user } as const;
  return spawnSync(shell.program, [...shell.first, ...args], options);
}

describe.each(shells)('init in $name', (shell) => {
  test('starts the command with hard limits, which the command cannot raise', () => {
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

  test('sets no memory limit for single processes if a cgroup limits the memory of all processes together', () => {
    const { stdout } = run(shell, limits, ['cat', '/proc/self/limits']);
    expect(stdout).toMatch(/^Max data size\s+unlimited\s+unlimited/m);
  });

  test('does not start the command if a limit cannot be set', () => {
    const { stdout, stderr, status } = run(shell, { ...limits, nofile: Number.MAX_SAFE_INTEGER }, ['echo', 'started']);
    expect([stdout, status]).toEqual(['', 126]);
    expect(stderr).toMatch(/limit of the sandbox could not be set/);
  });

  test('passes the arguments unchanged to the command and ends with the exit code of the command', () => {
    const odd = 'a \'b\' "c" $HOME `d` \\ ;e\nf*';
    const { stdout, status } = run(shell, limits, ['sh', '-c', 'printf %s "$1"; exit 7', 'sh', odd]);
    expect([stdout, status]).toEqual([odd, 7]);
  });
});
