/** Service, database and worker as `bin/runyard` starts and ends them: real processes, nothing left behind. */
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { serviceNodeFlags } from '../packages/cli/src/supervise/node-flags.ts';
import { thisProcess } from '../packages/contract/src/process-identity.ts';
import { endCommands, type RunningCommand, runCommand, startCommand } from './support/command-line.ts';
import { processesOf } from './support/processes-of.ts';

const repository = path.resolve(import.meta.dirname, '..');
const runyard = path.join(repository, 'bin/runyard');
let folder: string;
let env: Record<string, string>;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'runyard-up-'));
  env = { RUNYARD_DATA_DIR: path.join(folder, 'data'), RUNYARD_PORT: '0' };
});

afterEach(async () => {
  await runCommand([runyard, 'down', '--force'], { cwd: folder, env });
  endCommands();
  await noProcessLeft();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

function start(command: string, more: Record<string, string> = {}): RunningCommand {
  return startCommand([runyard, command], { cwd: folder, env: { ...env, ...more } });
}

const noProcessLeft = () =>
  vi.waitFor(() => expect(processesOf(folder)).toEqual([]), { timeout: 40_000, interval: 50 });
const programs = (name: 'service' | 'worker') =>
  processesOf(folder).filter(({ command }) => command.includes(`packages/${name}/src/main.ts`));
const lastWordsOfService = (): unknown => {
  const lines = readFileSync(path.join(folder, 'data/logs/service.log'), 'utf8').trimEnd().split('\n');
  return JSON.parse(lines.at(-1) ?? '').msg;
};
const origin = () => JSON.parse(readFileSync(path.join(folder, 'data/supervisor.json'), 'utf8')).origin as string;

test('stops everything at SIGTERM and gives the service its time to stop', { timeout: 120_000 }, async () => {
  const up = start('up');
  await up.sees('Ctrl-C stops everything.');
  expect(programs('service')).toHaveLength(1);
  expect(programs('worker')).toHaveLength(1);
  // With a run behind it, the worker has made its sandboxes and its connection: there is something to end.
  await runCommand([runyard, 'run', '-'], { cwd: folder, env, input: '```sh\ntrue\n```' });
  up.child.kill('SIGTERM');
  expect(await up.exited).toBe(0);
  expect(processesOf(folder)).toEqual([]);
  expect(lastWordsOfService(), 'it was not killed').toBe('service stopped');
});

test('starts the service with its Node flags, the first time and each later time', { timeout: 120_000 }, async () => {
  const up = start('up');
  await up.sees('Ctrl-C stops everything.');
  const flags = () =>
    programs('service').map(({ command }) => serviceNodeFlags.every((flag) => command.includes(flag)));
  expect(flags()).toEqual([true]);
  process.kill(programs('service')[0]?.pid ?? 0, 'SIGKILL');
  await up.sees('the service runs again');
  expect(flags()).toEqual([true]);
});

test('stops with down while runs are live only as told, and marks those that it ends as retryable', {
  timeout: 240_000,
}, async () => {
  const call = (args: string[], input = '') => runCommand([runyard, ...args], { cwd: folder, env, input });
  const begin = async (commands: string) => {
    const { output } = await call(['run', '--detach', '--json', '-'], `\`\`\`sh\n${commands}\n\`\`\``);
    const { run_id: runId } = JSON.parse(output.split('\n').find((line) => line.startsWith('{')) ?? '');
    const logs = startCommand([runyard, 'logs', runId, '--follow'], { cwd: folder, env });
    await logs.sees('│ begun');
    return runId as string;
  };
  const patient = await begin('echo begun; sleep 300');
  const refused = await call(['down']);
  expect(refused.output).toMatch(/nothing was stopped, because there is 1 live run:\n +[0-9a-f-]{36} +INPROGRESS/);
  expect(refused.code).toBe(1);
  expect(programs('service')).toHaveLength(1);

  const waiting = startCommand([runyard, 'down', '--wait'], { cwd: folder, env });
  await waiting.sees('waiting for 1 live run');
  expect(JSON.parse((await call(['runs', 'get', patient])).output).state).toBe('INPROGRESS');
  await call(['cancel', patient]);
  expect(await waiting.exited).toBe(0);
  expect(processesOf(folder)).toEqual([]);

  const ended = await begin('echo begun; sleep 300');
  const forced = await call(['down', '--force']);
  expect(forced).toMatchObject({ code: 0, output: expect.stringContaining(`bin/runyard rerun ${ended}`) });
  expect(processesOf(folder)).toEqual([]);
  await call(['run', '-'], '```sh\ntrue\n```');
  const { state, status_message } = JSON.parse((await call(['runs', 'get', ended])).output);
  expect({ state, ...status_message }).toMatchObject({
    state: 'ERROR',
    error_code: 'resource_unavailable',
    retryable: true,
  });

  const { output } = await call(['run', '--approval', 'ask', '-'], '```sh\necho asked\n```');
  expect(output).toContain('BLOCKED');
  expect(await call(['down']), 'a run that waits for a person is not ended').toMatchObject({ code: 0 });
  await call(['run', '-'], '```sh\ntrue\n```');
  expect((await call(['runs', '--state', 'BLOCKED'])).output).toContain('asks for permission to use shell: echo asked');
});

test('leaves no process after a stop in the middle of the start', { timeout: 120_000 }, async () => {
  const up = start('up');
  await vi.waitFor(() => expect(programs('service')).toHaveLength(1), { timeout: 30_000, interval: 20 });
  up.child.kill('SIGINT');
  await up.exited;
  expect(up.output()).not.toContain('Runyard is running');
  expect(processesOf(folder)).toEqual([]);
  expect(lastWordsOfService()).toMatch(/^service stopped/);
});

test('leaves no process after kill -9 of the supervisor', { timeout: 120_000 }, async () => {
  const up = start('up');
  await up.sees('Ctrl-C stops everything.');
  up.child.kill('SIGKILL');
  await up.exited;
  await noProcessLeft();
  const again = start('up');
  await again.sees('Ctrl-C stops everything.');
});

test('restarts a service and a worker that died at the same address, and says so', {
  timeout: 180_000,
}, async () => {
  const up = start('up');
  await up.sees('Ctrl-C stops everything.');
  const before = origin();
  for (const name of ['service', 'worker'] as const) {
    const [first] = programs(name);
    process.kill(first?.pid ?? 0, 'SIGKILL');
    await up.sees(`the ${name} ended by signal SIGKILL; starting it again in`);
    await up.sees(`the ${name} runs again`);
    expect(programs(name)).toHaveLength(1);
    expect(programs(name)[0]?.pid).not.toBe(first?.pid);
  }
  expect((await fetch(`${before}/readyz`)).status).toBe(200);
  const { output, code } = await runCommand([runyard, 'run', '-'], {
    cwd: folder,
    env,
    input: '```sh\necho still here\n```',
  });
  expect(output).toContain('│ still here');
  expect(code).toBe(0);
});

test('prints at a second up the address of the first one, which a second run uses', { timeout: 120_000 }, async () => {
  const up = start('up');
  await up.sees('Ctrl-C stops everything.');
  const second = await runCommand([runyard, 'up'], { cwd: folder, env });
  expect(second.code).toBe(1);
  expect(second.output).toContain(`runyard is running already (process ${up.child.pid}, ${origin()})`);
  const run = await runCommand([runyard, 'run', '--json', '-'], { cwd: folder, env, input: '```sh\ntrue\n```' });
  expect(run.output).not.toContain('starting');
  const last = JSON.parse(run.output.trimEnd().split('\n').at(-1) ?? '');
  expect(last).toMatchObject({ type: 'run', run: { state: 'SUCCEEDED' } });
});

test('uses what is set for the command, or says how it differs from what runs', { timeout: 120_000 }, async () => {
  const up = start('up');
  await up.sees('Ctrl-C stops everything.');
  const call = (args: string[], more: Record<string, string>) =>
    runCommand([runyard, ...args], { cwd: folder, env: { ...env, ...more } });
  const dead = { RUNYARD_BASE_URL: 'http://127.0.0.1:9' };
  for (const args of [['run', 'say hello'], ['runs'], ['status']]) {
    const refused = await call(args, dead);
    expect(refused.output).toContain('http://127.0.0.1:9');
    expect(refused.output).not.toContain('SUCCEEDED');
    expect(refused.code).toBe(1);
  }
  const otherPort = await call(['runs'], { RUNYARD_PORT: '4999' });
  expect(otherPort.output).toMatch(/RUNYARD_PORT: here 4999; running with \d+\n.*runyard down && bin\/runyard up/);
  expect(otherPort.code).toBe(1);
  expect(otherPort.output).toContain(`running with ${new URL(origin()).port}`);
  expect((await call(['runs'], { RUNYARD_PORT: new URL(origin()).port })).code).toBe(0);
  const otherKey = { RUNYARD_ANTHROPIC_API_KEY: 'sk-canary', RUNYARD_MODEL_BASE_URL: 'http://127.0.0.1:9/v1' };
  const refused = await call(['run', 'say hello'], otherKey);
  expect(refused.output).toContain('RUNYARD_ANTHROPIC_API_KEY: here set; running with not set');
  expect(refused.output).toContain('RUNYARD_MODEL_BASE_URL: here http://127.0.0.1:9/v1; running with not set');
  expect(refused.output).not.toContain('canary');
  expect(refused.code).toBe(1);
  expect((await call(['runs'], otherKey)).output).toContain('no runs');
  const named = await call(['runs'], { RUNYARD_BASE_URL: origin().replace('127.0.0.1', 'localhost') });
  expect(named, 'the key of the folder is for its own service').toMatchObject({ code: 0 });
});

test('sends the key of the data folder to no other server', { timeout: 120_000 }, async () => {
  const up = start('up');
  await up.sees('Ctrl-C stops everything.');
  const headers: (string | undefined)[] = [];
  const other = http.createServer((request, response) => {
    headers.push(request.headers.authorization);
    response.writeHead(401).end();
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = other.address() as net.AddressInfo;
    const base = { RUNYARD_BASE_URL: `http://127.0.0.1:${port}` };
    await runCommand([runyard, 'runs'], { cwd: folder, env: { ...env, ...base } });
    expect(headers).toEqual([undefined]);
  } finally {
    other.close();
  }
});

test('rejects a port that is in use, names it and leaves no process', { timeout: 120_000 }, async () => {
  const server = net.createServer();
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as net.AddressInfo).port));
  });
  try {
    for (const command of ['up', 'run'] as const) {
      const refused = await runCommand([runyard, command, ...(command === 'run' ? ['hi there'] : [])], {
        cwd: folder,
        env: { ...env, RUNYARD_PORT: String(port) },
      });
      expect(refused.output).toContain(`port ${port} on 127.0.0.1 is in use`);
      expect(refused.code).toBe(1);
    }
    expect(processesOf(folder)).toEqual([]);
  } finally {
    server.close();
  }
});

test('rejects wrong settings before it starts a program, without showing secrets', { timeout: 120_000 }, async () => {
  const refused = await runCommand([runyard, 'up'], {
    cwd: folder,
    env: { ...env, RUNYARD_LOG: 'loud', RUNYARD_DATABASE_URL: 'mysql://u:hunter2@h/d' },
  });
  expect(refused.code).toBe(2);
  expect(refused.output).toContain('RUNYARD_LOG: ');
  expect(refused.output).toContain('RUNYARD_DATABASE_URL: must be a postgres:// URL');
  expect(refused.output).not.toContain('hunter2');
  expect(processesOf(folder)).toEqual([]);
});

test('reports an unreachable database server with the last log lines of the service', {
  timeout: 120_000,
}, async () => {
  const refused = await runCommand([runyard, 'up'], {
    cwd: folder,
    env: { ...env, RUNYARD_DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/d' },
  });
  expect(refused.code).toBe(1);
  expect(refused.output).toContain('the service did not start');
  expect(refused.output).toContain('ECONNREFUSED');
  expect(refused.output).not.toContain('hunter2');
  expect(processesOf(folder)).toEqual([]);
});

test('ends the command run in a pipeline with the run, although the started programs continue', {
  timeout: 120_000,
}, async () => {
  writeFileSync(path.join(folder, 'p.md'), '```sh\necho piped\n```\n');
  // `cat` and the lock on descriptor 9 would wait for ever if the background processes had inherited them.
  const script = `exec 9>lock; ${runyard} run p.md 2>&1 | cat`;
  const { output } = await runCommand(['sh', '-c', script], { cwd: folder, env });
  expect(output).toContain('│ piped');
  expect(programs('service')).toHaveLength(1);
  for (const { pid } of processesOf(folder)) {
    const open = await runCommand(['sh', '-c', `ls -l /proc/${pid}/fd`], { cwd: folder });
    expect(open.output).not.toContain(path.join(folder, 'lock'));
  }
});

test('starts although a crash left a service.json whose process id now belongs to another program', {
  timeout: 120_000,
}, async () => {
  mkdirSync(path.join(folder, 'data'));
  const stale = { pid: process.pid, base_url: 'http://127.0.0.1:1', started_at: '2026-11-21T10:00:00Z' };
  const identity = { ...thisProcess(), start_ticks: 1 };
  for (const content of [stale, { ...stale, ...identity }]) {
    writeFileSync(path.join(folder, 'data/service.json'), JSON.stringify(content));
    const told = await runCommand([runyard, 'status'], { cwd: folder, env });
    expect(told).toMatchObject({ code: 1, output: expect.stringContaining('not running') });
  }
  const run = await runCommand([runyard, 'run', '-'], { cwd: folder, env, input: '```sh\necho fresh\n```' });
  expect(run.output).toContain('│ fresh');
  expect(run.code).toBe(0);
});

test('stops programs in the background whose data folder was removed, and says so', { timeout: 120_000 }, async () => {
  await runCommand([runyard, 'run', '-'], { cwd: folder, env, input: '```sh\ntrue\n```' });
  expect(programs('service')).toHaveLength(1);
  const log = openSync(path.join(folder, 'data/logs/supervisor.log'), 'r');
  try {
    // PostgreSQL may still write while it is removed.
    rmSync(path.join(folder, 'data'), { recursive: true, force: true, maxRetries: 20 });
    await noProcessLeft();
    expect(readFileSync(log, 'utf8')).toContain('was removed: stopping');
  } finally {
    closeSync(log);
  }
});

test('shares between two first runs the programs that one of them starts', { timeout: 180_000 }, async () => {
  const runs = ['one', 'two'].map((word) =>
    runCommand([runyard, 'run', '-'], { cwd: folder, env, input: `\`\`\`sh\necho ${word}\n\`\`\`` }),
  );
  for (const { code, output } of await Promise.all(runs)) {
    expect(output).toContain('SUCCEEDED');
    expect(code).toBe(0);
  }
  expect(programs('service')).toHaveLength(1);
  expect(programs('worker')).toHaveLength(1);
});

test('cancels the run at the first Ctrl-C and exits with 1', { timeout: 120_000 }, async () => {
  writeFileSync(path.join(folder, 'sleep.md'), '```sh\necho begun\nsleep 300\n```\n');
  const running = startCommand([runyard, 'run', 'sleep.md'], { cwd: folder, env });
  await running.sees('│ begun');
  running.child.kill('SIGINT');
  expect(await running.exited).toBe(1);
  expect(running.output()).toContain('cancelling the run');
  expect(running.output()).toContain('CANCELLED');
});

test('gives the worker no database address, no provider key and no variable of the shell, and makes folders for their owner only', {
  timeout: 120_000,
}, async () => {
  const up = start('up', { RUNYARD_ANTHROPIC_API_KEY: 'sk-canary-anthropic', AWS_SECRET_ACCESS_KEY: 'canary-shell' });
  await up.sees('Ctrl-C stops everything.');
  const environment = (name: 'service' | 'worker') => readFileSync(`/proc/${programs(name)[0]?.pid}/environ`, 'utf8');
  expect(environment('service')).toContain('sk-canary-anthropic');
  expect(environment('service')).not.toContain('canary-shell');
  expect(environment('worker')).not.toContain('canary');
  expect(
    processesOf(folder)
      .map(({ command }) => command)
      .join('\n'),
  ).not.toContain('canary');
  expect(statSync(path.join(folder, 'data')).mode & 0o777).toBe(0o700);
  expect(statSync(path.join(folder, 'data/bootstrap-key')).mode & 0o777).toBe(0o600);
  expect(up.output()).not.toContain('canary');
});
