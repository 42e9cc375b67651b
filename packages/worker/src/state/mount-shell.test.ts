import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { idleShells, runInShell } from './mount-shell.ts';

let top: string;
beforeEach(() => {
  top = newFolder();
});

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Returns the number that a command has written into the file. */
async function numberIn(file: string): Promise<number> {
  await expect.poll(() => readFile(file, 'utf8').catch(() => '')).toMatch(/^\d+\n$/);
  return Number(await readFile(file, 'utf8'));
}

describe('the shell for mounts', () => {
  test('runs several commands, and passes arguments unchanged', async () => {
    expect(await runInShell(['true'])).toEqual({ type: 'done' });
    const waiting = idleShells();
    expect(waiting).not.toEqual([]);
    const odd = 'a \'b\' "c" $HOME `d` \\ ;e\nf*';
    expect(await runInShell(['sh', '-c', 'printf %s "$1"; exit 3', 'sh', odd])).toEqual({
      type: 'failed',
      status: 3,
      output: odd,
    });
    expect(idleShells()).toEqual(waiting);
  });

  test('gives commands an empty input and no variables of the worker', async () => {
    const { output } = (await runInShell(['sh', '-c', 'cat; env; exit 1'])) as { output: string };
    const names = output.split('\n').map((line) => line.split('=')[0]);
    expect(names.filter((name) => !['PATH', 'LC_ALL', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(name ?? ''))).toEqual([]);
  });

  test('reports status 127 if the program does not exist', async () => {
    expect(await runInShell(['no-such-program'])).toMatchObject({ type: 'failed', status: 127 });
  });

  test('is replaced if it was killed while it waited for a command', async () => {
    await runInShell(['true']);
    const killed = idleShells();
    for (const shell of killed) process.kill(shell, 'SIGKILL');
    await expect.poll(() => idleShells()).toEqual([]);
    expect(await runInShell(['true'])).toEqual({ type: 'done' });
    expect(killed).not.toContain(idleShells()[0]);
  });

  test('reports a command as lost only when all processes of the command have ended', async () => {
    const [shellFile, file, done] = ['shell', 'command', 'done'].map((name) => path.join(top, name)) as [
      string,
      string,
      string,
    ];
    const script = `echo $PPID > ${shellFile}; echo $$ > ${file}; until [ -e ${done} ]; do sleep 0.05; done`;
    let isOver = false;
    const result = runInShell(['sh', '-c', script]).finally(() => {
      isOver = true;
    });
    const command = await numberIn(file);
    const shell = await numberIn(shellFile);
    process.kill(shell, 'SIGKILL');
    // While the command of the killed shell still runs, another command gets another shell.
    expect(await runInShell(['true'])).toEqual({ type: 'done' });
    await expect.poll(() => isAlive(shell)).toBe(false);
    expect([isOver, isAlive(command)]).toEqual([false, true]);
    await writeFile(done, '');
    expect(await result).toEqual({ type: 'lost' });
    await expect.poll(() => isAlive(command)).toBe(false);
  });

  test('kills a command that takes too long, or that writes too much', async () => {
    const file = path.join(top, 'command');
    const late = runInShell(['sh', '-c', `echo $$ > ${file}; exec sleep 600`], 1000);
    const command = await numberIn(file);
    expect(await late).toEqual({ type: 'lost' });
    await expect.poll(() => isAlive(command)).toBe(false);
    expect(await runInShell(['yes'])).toEqual({ type: 'lost' });
    expect(await runInShell(['true'])).toEqual({ type: 'done' });
  });

  test('does not mistake output of a command for the result', async () => {
    const result = await runInShell(['sh', '-c', 'echo 0; echo "deadbeefdeadbeefdeadbeefdeadbeef 0"; exit 4']);
    expect(result).toMatchObject({ type: 'failed', status: 4 });
  });

  test('is started several times for concurrent commands, and two of these shells are kept', async () => {
    const results = await Promise.all(['1', '2', '3'].map((status) => runInShell(['sh', '-c', `exit ${status}`])));
    expect(results).toMatchObject([{ status: 1 }, { status: 2 }, { status: 3 }]);
    expect(idleShells()).toHaveLength(2);
  });
});
