import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { isRunning, listDescendants } from './processes.ts';

test('descendants include processes that left their group and removed their environment, and no other processes', async () => {
  const [parent, other] = ['setsid env -i sleep 60 & echo $!; wait', 'sleep 60 & echo $!; wait'].map((script) =>
    spawn('sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  const started = [parent, other].flatMap((child) => child ?? []);
  try {
    const [mine = 0, foreign = 0] = await Promise.all(
      started.map(async ({ stdout }) => Number(String((await once(stdout, 'data'))[0]))),
    );
    const found = listDescendants([parent?.pid ?? 0]);
    expect(found).toEqual(expect.arrayContaining([parent?.pid, mine]));
    expect(found).not.toContain(foreign);
    expect(found).not.toContain(process.pid);
    for (const pid of [mine, foreign]) process.kill(pid, 'SIGKILL');
  } finally {
    for (const { pid } of started) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  }
});

test('a list without processes has no descendants', () => {
  expect(listDescendants([])).toEqual([]);
});

test('a process runs while it starts one program after another, and not after its end', async () => {
  const script = 'exec sh -c "$0" "$0"';
  const busy = spawn('sh', ['-c', script, script], { stdio: 'ignore' });
  const parent = spawn('sh', ['-c', 'true & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    await once(busy, 'spawn');
    const seen = new Set(Array.from({ length: 20_000 }, () => isRunning(busy.pid ?? 0)));
    expect([...seen]).toEqual([true]);
    const unwaited = Number(String((await once(parent.stdout, 'data'))[0]));
    await expect.poll(() => isRunning(unwaited)).toBe(false);
  } finally {
    busy.kill('SIGKILL');
    parent.kill('SIGKILL');
  }
  await once(busy, 'exit');
  expect(isRunning(busy.pid ?? 0)).toBe(false);
});
