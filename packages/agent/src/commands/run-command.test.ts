import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { eventually, isRunning } from '../../test/agent.ts';
import { type CommandOptions, runCommand } from './run-command.ts';

const folder = newFolder();

const sh = (script: string, options: Partial<CommandOptions> = {}) =>
  runCommand({ argv: ['/bin/sh', '-c', script], cwd: folder, env: { PATH: process.env.PATH }, ...options });

describe('runCommand', () => {
  test('returns the output of both streams in order and the exit code', async () => {
    const live: string[] = [];
    const result = await sh('echo one; echo two >&2; echo three; exit 3', { onOutput: (text) => live.push(text) });
    expect(result).toMatchObject({ outcome: 'exited', exitCode: 3, output: 'one\ntwo\nthree\n', truncated: false });
    expect(live.join('')).toBe('one\ntwo\nthree\n');
  });

  test('returns 128 + the number of the signal as the exit code if a signal ends the command', async () => {
    expect(await sh('kill -9 $$')).toMatchObject({ exitCode: 137, signal: 'SIGKILL' });
  });

  test('reports a program that does not exist', async () => {
    const result = await runCommand({ argv: ['/no/such/program'], cwd: folder, env: {} });
    expect(result.exitCode).toBe(127);
    expect(result.output).toContain('/no/such/program');
  });

  test('reports a folder that does not exist', async () => {
    const result = await runCommand({ argv: ['true'], cwd: join(folder, 'absent'), env: {} });
    expect(result).toMatchObject({ outcome: 'not_started', exitCode: 127 });
  });

  test('replaces invalid UTF-8 and NUL', async () => {
    const live: string[] = [];
    const result = await sh(String.raw`printf 'a\377\376b\000c'`, { onOutput: (text) => live.push(text) });
    expect(result.output).toBe('a\uFFFD\uFFFDb\uFFFDc');
    expect(live.join('')).toBe(result.output);
  });

  test('joins a character whose bytes come in two chunks', async () => {
    const live: string[] = [];
    const result = await sh(String.raw`printf '\303'; sleep 0.05; printf '\274'`, {
      onOutput: (text) => live.push(text),
    });
    expect(result.output).toBe('ü');
    expect(live.join('')).toBe('ü');
  });

  test('returns head, tail and size of 200 MB of output, and takes constant memory', async () => {
    const before = process.memoryUsage().rss;
    const live: string[] = [];
    let peak = 0;
    const result = await sh('echo START; head -c 200000000 /dev/zero | tr "\\0" x; echo; echo END', {
      onOutput: (text) => {
        live.push(text);
      },
      backpressure: () => {
        peak = Math.max(peak, process.memoryUsage.rss());
        return undefined;
      },
    });
    expect(result.outputBytes).toBe(200_000_000 + 6 + 1 + 4);
    expect(result.truncated).toBe(true);
    expect(result.output.startsWith('START\nxxx')).toBe(true);
    expect(result.output.endsWith('xxx\nEND\n')).toBe(true);
    expect(result.output).toContain('xxx…\n… 191 MB left out …\n…xxx');
    expect(result.output.length).toBeLessThan(64 * 1024);
    expect(live.join('')).toBe(result.output);
    expect(peak - before).toBeLessThan(120 * 1024 * 1024);
  });

  test('cuts a long output between lines and states the number of omitted lines', async () => {
    const live: string[] = [];
    const result = await sh('seq 1 100000', { onOutput: (text) => live.push(text) });
    expect(live.join('')).toBe(result.output);
    const lines = result.output.trimEnd().split('\n');
    const mark = lines.findIndex((line) => line.startsWith('…'));
    const [head, tail] = [lines.slice(0, mark).map(Number), lines.slice(mark + 1).map(Number)];
    expect(head).toEqual(head.map((_, index) => index + 1));
    expect(tail).toEqual(tail.map((_, index) => 100_000 - tail.length + 1 + index));
    const missing = 100_000 - head.length - tail.length;
    expect(lines[mark]).toBe(`… ${missing.toLocaleString('en-US')} lines (517 KB) left out …`);
    expect(result.leftOut.lines).toBe(missing);
  });

  test('returns the whole output, without a cut, if it is longer than the head but not too long, for pieces of any size', async () => {
    const live: string[] = [];
    const result = await sh('seq 1 9000', { onOutput: (text) => live.push(text) });
    expect(result.output).toBe(Array.from({ length: 9000 }, (_, index) => `${index + 1}\n`).join(''));
    expect(live.join('')).toBe(result.output);
  });

  test('does not split a character where it cuts a long output', async () => {
    const result = await sh(`i=0; while [ $i -lt 3000 ]; do printf 'aüüüüüüüüüüüüüüüüüüüüüüü'; i=$((i+1)); done`);
    expect(result.truncated).toBe(true);
    expect(result.output).not.toContain('\uFFFD');
  });

  test.each([
    ['ignores SIGTERM, with its children', 'trap "" TERM; sleep 600 & echo $!; while true; do sleep 1; done'],
    ['has left the process group', "setsid sh -c 'echo $$; exec sleep 600' & wait"],
  ])('stops what %s', async (_, command) => {
    const abort = new AbortController();
    let pid = 0;
    const running = sh(command, {
      signal: abort.signal,
      graceMs: 100,
      onOutput: (text) => {
        pid = Number(text);
        abort.abort();
      },
    });
    expect(await running).toMatchObject({ outcome: 'aborted' });
    await eventually(() => !isRunning(pid));
  });

  test('ends a command at its timeout', async () => {
    expect(await sh('sleep 600', { timeoutMs: 50, graceMs: 30_000 })).toMatchObject({
      outcome: 'timed_out',
      exitCode: 143,
    });
  });

  test('does not wait for a background process and does not end it', async () => {
    const result = await sh('sleep 600 & echo $!');
    const pid = Number(result.output);
    expect(result).toMatchObject({ outcome: 'exited', exitCode: 0 });
    expect(result.durationMs).toBeLessThan(60_000);
    expect(isRunning(pid)).toBe(true);
    process.kill(pid, 'SIGKILL');
  });

  test('keeps the output pipe of a background process open after the command', async () => {
    const result = await sh(
      'sh -c \'trap "" PIPE; i=0; while [ $i -lt 30 ]; do sleep 0.02; echo tick || exit 1; i=$((i+1)); done; echo ok > survived\' & echo started',
    );
    expect(result.output).toContain('started');
    await eventually(() => {
      try {
        rmSync(join(folder, 'survived'));
        return true;
      } catch {
        return false;
      }
    });
  });

  test('pauses the command while the reporter cannot take more events', async () => {
    let release = () => {};
    let asked = 0;
    const room = new Promise<void>((resolve) => {
      release = resolve;
    });
    const running = sh('head -c 10000000 /dev/zero; echo done', {
      backpressure: () => {
        asked++;
        return room;
      },
    });
    await eventually(() => asked === 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toBe(1);
    release();
    expect(await running).toMatchObject({ outputBytes: 10_000_005 });
  });
});
