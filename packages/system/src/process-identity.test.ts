import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { startTicks, stateOf, thisProcess } from './process-identity.ts';

test('finds this process alive', () => {
  expect(stateOf(thisProcess())).toBe('alive');
});

test('distinguishes a process from a later process with the same id', () => {
  expect(stateOf({ ...thisProcess(), start_ticks: 1 })).toBe('gone');
});

test('cannot tell whether a process of another namespace is alive', () => {
  expect(stateOf({ ...thisProcess(), pid_namespace: '1' })).toBe('elsewhere');
});

test('returns no start time for a process that does not exist', () => {
  expect(startTicks(2 ** 22 + 1)).toBeUndefined();
});

test('counts a zombie as gone', async () => {
  // The shell starts a child, becomes `sleep` and never reaps it.
  const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const [line] = await once(parent.stdout, 'data');
    await expect.poll(() => startTicks(Number(line))).toBeUndefined();
  } finally {
    parent.kill('SIGKILL');
  }
});
