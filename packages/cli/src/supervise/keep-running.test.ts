import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startTicks } from '@runyard/system/process-identity';
import { beforeEach, expect, test, vi } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { keepRunning } from './keep-running.ts';
import { describeExit, startProgram } from './program.ts';
import { serviceNodeFlags } from './stack.ts';

let folder: string;
let logFile: string;
beforeEach(() => {
  folder = newFolder();
  logFile = path.join(folder, 'program.log');
});

/** Returns a function that starts a program with this source. */
function program(source: string): () => ReturnType<typeof startProgram> {
  const script = path.join(folder, 'program.mjs');
  writeFileSync(script, source);
  return () =>
    startProgram({ script, args: [], env: { PATH: process.env.PATH ?? '', GREETING: 'hi' }, cwd: folder, logFile });
}
const patient = `
  import { onParentGone } from ${JSON.stringify(import.meta.resolve('@runyard/system/parent-input'))};
  onParentGone((how) => { console.log('bye, ' + how); process.exit(0); });
  console.log('up');`;
const logged = (text: string) =>
  vi.waitFor(() => expect(readFileSync(logFile, 'utf8')).toContain(text), { timeout: 60_000 });

test('a started program gets only its own environment, writes its own log, and stops when it is asked to', async () => {
  const running = await program(`console.log(JSON.stringify(process.env), process.argv.slice(2)); ${patient}`)();
  await logged('up');
  expect(await running.stop(60_000)).toEqual({ code: 0, signal: null });
  const log = readFileSync(logFile, 'utf8');
  expect(log).toContain('"GREETING":"hi"');
  expect(log).toContain('--stop-with-parent');
  expect(log).toContain('bye, asked');
  expect(log).not.toContain('VITEST');
});

test('startProgram passes flags of Node to Node and not to the program', async () => {
  const script = path.join(folder, 'program.mjs');
  writeFileSync(script, `console.log(JSON.stringify([process.execArgv, process.argv.slice(2)])); ${patient}`);
  const start = { script, args: ['more'], nodeFlags: serviceNodeFlags, env: {}, cwd: folder, logFile };
  const running = await startProgram(start);
  await logged('up');
  await running.stop(60_000);
  expect(readFileSync(logFile, 'utf8')).toContain(JSON.stringify([serviceNodeFlags, ['--stop-with-parent', 'more']]));
});

test('a program that does not stop in time is killed', async () => {
  const running = await program(`setInterval(() => {}, 1000); process.stdin.resume(); console.log('up');`)();
  await logged('up');
  expect(await running.stop(100)).toEqual({ code: null, signal: 'SIGKILL' });
});

test('a program ends when the parent process is killed, and the program can find out that the parent did not ask for a stop', async () => {
  const script = path.join(folder, 'program.mjs');
  writeFileSync(script, `${patient} console.log('pid ' + process.pid);`);
  const parent = `import { startProgram } from ${JSON.stringify(new URL('program.ts', import.meta.url).href)};
    await startProgram({ script: ${JSON.stringify(script)}, args: [], env: {}, cwd: '/', logFile: ${JSON.stringify(logFile)} });`;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', parent]);
  await logged('pid ');
  const child = Number(/pid (\d+)/.exec(readFileSync(logFile, 'utf8'))?.[1]);
  expect(startTicks(child)).toBeDefined();
  starter.kill('SIGKILL');
  await vi.waitFor(() => expect(startTicks(child)).toBeUndefined(), { timeout: 60_000 });
  expect(readFileSync(logFile, 'utf8')).toContain('bye, crashed');
});

test('keepRunning restarts a program whenever the program ends by itself, and reports each restart, until somebody stops the program', async () => {
  const start = program(patient);
  const reports: string[] = [];
  const first = await start();
  const keptProgram = keepRunning({
    name: 'worker',
    first,
    restart: start,
    report: (text) => reports.push(text),
    firstWaitMs: 10,
  });
  process.kill(first.pid, 'SIGKILL');
  await vi.waitFor(() => expect(keptProgram.current()?.pid ?? first.pid).not.toBe(first.pid), { timeout: 60_000 });
  const second = keptProgram.current();
  expect(reports[0]).toBe('the worker ended by signal SIGKILL; starting it again in 0.01 s');
  expect(reports[1]).toBe(`the worker runs again (process ${second?.pid})`);
  await keptProgram.stop(60_000);
  expect(second?.hasExited()).toBe(true);
  expect(reports).toHaveLength(2);
});

test('keepRunning waits longer after each end of a program, even if a restart fails', async () => {
  const start = program('process.exit(3)');
  const reports: string[] = [];
  let starts = 0;
  const restart = async () => {
    starts += 1;
    if (starts === 2) throw new Error('no room');
    return await start();
  };
  const keptProgram = keepRunning({
    name: 'service',
    first: await start(),
    restart,
    report: (text) => reports.push(text),
    firstWaitMs: 5,
  });
  await vi.waitFor(
    () => expect(reports.filter((text) => text.includes('starting it again')).length).toBeGreaterThan(3),
    { timeout: 60_000 },
  );
  await keptProgram.stop(1000);
  const waits = reports.filter((text) => text.includes('starting it again'));
  expect(waits[0]).toBe('the service ended by exit code 3; starting it again in 0.005 s');
  expect(waits[1]).toContain('in 0.01 s');
  expect(waits[2]).toBe('the service did not start: no room; starting it again in 0.02 s');
  expect(waits[3]).toContain('in 0.04 s');
});

test('endBy sends a signal and waits until the program has ended', async () => {
  const start = program(
    `process.on('SIGTERM', () => { console.log('finishing'); setTimeout(() => process.exit(0), 50); }); ${patient}`,
  );
  const reports: string[] = [];
  const first = await start();
  await logged('up');
  const keptProgram = keepRunning({ name: 'worker', first, restart: start, report: (text) => reports.push(text) });
  await keptProgram.endBy('SIGTERM');
  expect(await first.exited).toEqual({ code: 0, signal: null });
  expect(reports).toEqual([]);
});

test('describeExit names the exit code or the signal', () => {
  expect(describeExit({ code: 1, signal: null })).toBe('exit code 1');
  expect(describeExit({ code: null, signal: 'SIGKILL' })).toBe('signal SIGKILL');
});
