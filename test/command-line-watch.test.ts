/**
 * Tests commands that follow a run: how they show long output, ask questions at a terminal, end with exit codes, and react to signals.
 * The programs and the terminal are real.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from './support/close-at-end.ts';
import { endCommands, type RunningCommand, runCommand, startCommand } from './support/command-line.ts';
import { giveDatabase, giveRuntime, keepRuntime } from './support/head-start.ts';
import { processesOf } from './support/processes-of.ts';
import { runyardFile } from './support/programs.ts';

const runyard = await runyardFile();
const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/;
const say = (...commands: string[]) => commands.map((command) => `\`\`\`sh\n${command}\n\`\`\``).join('\n\n');

const folder = newFolder();
const env: Record<string, string> = { RUNYARD_DATA_DIR: path.join(folder, 'data'), RUNYARD_PORT: '0', NO_COLOR: '1' };
mkdirSync(path.join(folder, 'data'), { mode: 0o700 });
await giveDatabase(path.join(folder, 'data'));
await giveRuntime(path.join(folder, 'data'));
writeFileSync(path.join(folder, 'sleep.md'), say('echo begun; sleep 300'));
writeFileSync(path.join(folder, 'ask.md'), say('echo one-$((0+1))', 'echo two-$((1+1))'));
const up: RunningCommand = startCommand([runyard, 'up'], { cwd: folder, env });
await up.sees('Ctrl-C stops everything.');
await keepRuntime(path.join(folder, 'data'));

afterAll(() => {
  endCommands();
});

const call = (args: string[], input = '') => runCommand([runyard, ...args], { cwd: folder, env, input });
const stateOf = async (runId: string) => JSON.parse((await call(['runs', 'get', runId])).output).state as string;
const idIn = ({ output }: { output: string }) => uuid.exec(output)?.[0] ?? '';
const created = async (...args: string[]) => idIn(await call(['run', '--detach', ...args]));

/** Starts a command in a pseudo terminal. */
function inTerminal(...args: string[]): RunningCommand & { type(text: string): void } {
  const line = [runyard, ...args].join(' ');
  const running = startCommand(['script', '-qefc', line, '/dev/null'], { cwd: folder, env, keepsInput: true });
  return { ...running, type: (text) => running.child.stdin?.write(text) };
}
const prompts = (count: number) => new RegExp(`(or say why: [\\s\\S]*?){${count}}$`);

test('`run` and `logs` show the first and the last lines of a long output, and the number of lines that they leave out', async () => {
  const ran = await call(['run', '-'], say('seq 1 30000'));
  const shown = await call(['logs', idIn(ran)]);
  for (const { output } of [ran, shown]) {
    const lines = [...output.matchAll(/^ {2}│ (.*)$/gm)].map(([, line]) => line ?? '');
    const mark = lines.findIndex((line) => line.startsWith('…'));
    expect(lines.slice(0, mark).map(Number)).toEqual(Array.from({ length: mark }, (_, index) => index + 1));
    const tail = lines.slice(mark + 1).map(Number);
    expect(tail).toEqual(tail.map((_, index) => 30_000 - tail.length + 1 + index));
    expect(lines[mark]).toMatch(`… ${(30_000 - mark - tail.length).toLocaleString('en-US')} lines (`);
  }
  const { output } = await call(['logs', idIn(ran), '--tail', '2']);
  expect(output.trimEnd().split('\n')).toHaveLength(2);
  expect(output).toContain('succeeded');
});

test('`run` asks for an approval in a terminal: y approves, and any other text denies and becomes the reason', async () => {
  const asked = inTerminal('run', 'ask.md', '--approval', 'ask');
  await asked.sees(prompts(1));
  expect(asked.output()).not.toContain('│ one-1');
  asked.type('y\r');
  await asked.sees('│ one-1');
  await asked.sees(/two[\s\S]*or say why: [\s\S]*$/);
  asked.type('not on Fridays\r');
  expect(await asked.exited).toBe(1);
  expect(asked.output()).toContain('denied by Administrator: not on Fridays');
  expect(asked.output()).not.toContain('│ two-2');
});

test('`run` removes its question from the terminal when another person answers, and cancels the run at Ctrl-C', async () => {
  const asked = inTerminal('run', 'ask.md', '--approval', 'ask');
  await asked.sees(prompts(1));
  const runId = uuid.exec(asked.output())?.[0] ?? '';
  expect((await call(['approve', runId])).code).toBe(0);
  await asked.sees('answered elsewhere: the prompt is withdrawn');
  await asked.sees(/two[\s\S]*or say why: [\s\S]*$/);
  asked.type('\x03');
  expect(await asked.exited).toBe(130);
  expect(asked.output()).toContain('│ one-1');
  expect(await stateOf(runId)).toBe('CANCELLED');
});

test('`run` without a terminal exits with 3 when the run is BLOCKED, and `approve` and `deny` with `--follow` continue the run', async () => {
  const ran = await call(['run', 'ask.md', '--approval', 'ask']);
  expect(ran.code).toBe(3);
  const runId = idIn(ran);
  const left = await call(['logs', runId, '--follow', '--exit-status']);
  expect(left.code).toBe(3);
  expect(left.output).toMatch(/approve .* --follow[\s\S]*stopped following: the run is BLOCKED/);
  const approved = await call(['approve', runId, '--follow']);
  expect(approved.output).toContain('│ one-1');
  expect(approved.code).toBe(3);
  const denied = await call(['deny', runId, 'no', '--follow']);
  expect(denied.output).not.toContain('│ one-1');
  expect(denied.code).toBe(1);
  expect((await call(['logs', runId])).code).toBe(0);
  const sent = await call(['send', runId, '-', '--follow'], say('true'));
  expect(sent.output).toContain('sent');
});

test.each([
  ['SIGTERM', [], 'CANCELLED'],
  ['SIGHUP', [], 'CANCELLED'],
  ['SIGINT', [], 'CANCELLED'],
  ['SIGTERM', ['--detach-on-signal'], 'INPROGRESS'],
] as const)(
  'after %s, `run` with the options %j exits with 130, and the state of the run is %s',
  async (signal, options, state) => {
    const running = startCommand([runyard, 'run', 'sleep.md', ...options], { cwd: folder, env });
    await running.sees('│ begun');
    running.child.kill(signal);
    expect(await running.exited).toBe(130);
    const runId = uuid.exec(running.output())?.[0] ?? '';
    expect(running.output()).toMatch(
      new RegExp(`${state === 'CANCELLED' ? 'cancelling the run' : 'the run'} ${runId}`),
    );
    expect(await stateOf(runId)).toBe(state);
    await call(['cancel', runId]);
  },
);

test('`run` cancels the run and reports this when the program that reads the output ends', async () => {
  const piped = await runCommand(['sh', '-c', `{ ${runyard} run sleep.md; echo "exit $?" >&2; } | head -n 1`], {
    cwd: folder,
    env,
  });
  expect(piped.output).toMatch(/the reader of the output has gone: cancelling the run[\s\S]*exit 130/);
  expect(await stateOf(idIn(piped))).toBe('CANCELLED');
});

test('`logs` exits with 4 when another command cancels the run', async () => {
  const runId = await created('sleep.md');
  const follow = startCommand([runyard, 'logs', runId, '--follow', '--exit-status'], { cwd: folder, env });
  await follow.sees('│ begun');
  expect((await call(['logs', runId, '--exit-status'])).code).toBe(2);
  await call(['cancel', runId]);
  expect(await follow.exited).toBe(4);
});

test('`run` stops the programs that it started and creates no run if Ctrl-C comes before the run is created', async () => {
  const other = { ...env, RUNYARD_DATA_DIR: path.join(folder, 'other') };
  const running = startCommand([runyard, 'run', 'sleep.md'], { cwd: folder, env: other });
  await running.sees('starting service');
  running.child.kill('SIGINT');
  expect(await running.exited).toBe(130);
  expect(running.output()).toContain('stopped; no run was created');
  expect(processesOf(path.join(folder, 'other'))).toEqual([]);
});

test('Ctrl-C ends `compare` in a terminal: at the question nothing starts, and later it names the runs, which continue', async () => {
  const original = await created('ask.md');
  await expect.poll(() => stateOf(original)).toBe('SUCCEEDED');
  const count = async () => JSON.parse((await call(['runs', '--json'])).output).runs.length as number;
  const before = await count();
  const question = 'Start them? [y/N] ';
  // Ctrl-C and Ctrl-D.
  for (const key of ['\x03', '\x04']) {
    const asked = inTerminal('compare', original, '--prompt', 'sleep.md', '--times', '2');
    await asked.sees(question);
    asked.type(key);
    expect(await asked.exited).toBe(130);
    expect(asked.output()).toMatch(/runyard: interrupted at the question\s*$/);
  }
  expect(await count()).toBe(before);
  const waits = inTerminal('compare', original, '--prompt', 'sleep.md', '--times', '2');
  await waits.sees(question);
  waits.type('y\r');
  await waits.sees('started 2 runs; waiting for their end. Ctrl-C leaves them running');
  waits.type('\x03');
  expect(await waits.exited).toBe(130);
  const [, named = ''] =
    /the runs continue; see the table again with: bin\/runyard compare (.*)/.exec(waits.output()) ?? [];
  const [first, ...repeated] = named.trim().split(' ');
  expect([first, repeated.length, await count()]).toEqual([original, 2, before + 2]);
  for (const runId of repeated) {
    await expect.poll(() => stateOf(runId)).toBe('INPROGRESS');
    await call(['cancel', runId]);
  }
});

test('the help of each command that follows a run explains the exit codes', async () => {
  for (const command of ['run', 'logs', 'approve', 'deny', 'send'])
    expect((await call([command, '--help'])).output).toContain('3 the run is BLOCKED');
  expect(readFileSync(path.resolve(import.meta.dirname, '../README.md'), 'utf8')).toContain('130');
});

test('`logs` exits with 0 when the program that reads its output closes the pipe', async () => {
  const { output } = await call(['run', '--detach', '-'], say('while true; do echo again; sleep 0.2; done'));
  const runId = uuid.exec(output)?.[0] ?? '';
  const script = `{ ${runyard} logs ${runId} --follow; echo "exit $?" >&2; } | head -n 1`;
  const piped = await runCommand(['sh', '-c', script], { cwd: folder, env });
  expect(piped.output).toContain('exit 0');
  expect(piped.output).not.toContain('EPIPE');
  await call(['cancel', runId]);
});

test('`run --json` prints one event per line, then the run, and nothing else', async () => {
  const { output } = await call(['run', '--json', '-'], say('printf "\\033[31mred\\n"'));
  const lines = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.some((line) => line.type === 'conversation')).toBe(true);
  expect(lines.at(-1)).toMatchObject({ type: 'run', run: { state: 'SUCCEEDED' } });
  expect(output).not.toContain('\u001b');
});

test('`up` stops all programs at SIGTERM, and waits until the service has stopped by itself', async () => {
  // The worker ends its sandboxes and connections only after the end of the runs.
  up.child.kill('SIGTERM');
  expect(await up.exited).toBe(0);
  expect(processesOf(folder)).toEqual([]);
  const lines = readFileSync(path.join(folder, 'data/logs/service.log'), 'utf8').trimEnd().split('\n');
  expect(JSON.parse(lines.at(-1) ?? '').msg, 'it was not killed').toBe('service stopped');
});
