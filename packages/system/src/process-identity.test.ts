import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { startTicks, stateOf, thisProcess } from './process-identity.ts';

test('stateOf reports that this process is alive', () => {
  expect(stateOf(thisProcess())).toBe('alive');
});

test('stateOf distinguishes a process from a later process with the same id', () => {
  expect(stateOf({ ...thisProcess(), start_ticks: 1 })).toBe('gone');
});

test('stateOf returns elsewhere for a process of another pid namespace', () => {
  expect(stateOf({ ...thisProcess(), pid_namespace: '1' })).toBe('elsewhere');
});

test('startTicks returns undefined for a process that does not exist', () => {
  expect(startTicks(2 ** 22 + 1)).toBeUndefined();
});

test('startTicks returns undefined for a zombie', async () => {
  // The shell starts a child and then becomes `sleep`, which never reaps the child. So the child stays a zombie.
  const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const [line] = await once(parent.stdout, 'data');
    await expect.poll(() => startTicks(Number(line))).toBeUndefined();
  } finally {
    parent.kill('SIGKILL');
  }
});
