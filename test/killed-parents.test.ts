/**
 * Kills the commands `up`, `run`, `service` and `worker` with SIGKILL while runs are in the middle of their turns. These commands
 * start the programs and restart them. After the next start, the worker must adopt the sandboxes.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunItem } from '@runyard/contract/runs/runs';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from './support/close-at-end.ts';
import { endCommands, type RunningCommand, runCommand, startCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { giveDatabase, giveRuntime, keepRuntime } from './support/head-start.ts';
import { judge } from './support/killed-workers.ts';
import { processesOf } from './support/processes-of.ts';
import { runyardFile } from './support/programs.ts';
import { hasEnded } from './support/run-kinds.ts';
import { eventually } from './support/system.ts';

const runyard = await runyardFile();
const runCount = 40;
const killCount = 30;

const folder = newFolder();
afterAll(() => {
  endCommands();
});

/**
 * Makes a data folder and chooses a port for it. Every start on this folder uses this port, because sandboxes of an earlier start
 * still connect to it.
 */
async function openFolder(name: string) {
  const dataDir = path.join(folder, name);
  await giveDatabase(dataDir);
  await giveRuntime(dataDir);
  const env: Readonly<Record<string, string>> = {
    RUNYARD_DATA_DIR: dataDir,
    RUNYARD_PORT: String(await freePort()),
  };
  const call = (args: readonly string[], input?: string) =>
    runCommand([runyard, ...args], { cwd: folder, env, ...(input === undefined ? {} : { input }) });
  return {
    dataDir,
    env,
    call,
    start: (command: string) => startCommand([runyard, command], { cwd: folder, env }),
    /** Starts a run, and returns the id of the run when its command has begun. */
    async begin(seconds: number): Promise<string> {
      const prompt = `\`\`\`sh\necho begun; sleep ${seconds}; echo finished\n\`\`\``;
      const { output } = await call(['run', '--detach', '--json', '-'], prompt);
      const { run_id: runId } = JSON.parse(output.split('\n').find((line) => line.startsWith('{')) ?? output);
      const logs = startCommand([runyard, 'logs', runId, '--follow'], { cwd: folder, env });
      await logs.sees('│ begun');
      await kill9(logs);
      return runId;
    },
    run: async (runId: string): Promise<RunItem> => JSON.parse((await call(['runs', 'get', runId])).output),
    /** Waits until the run has ended. Returns the run. */
    async untilEnded(runId: string): Promise<RunItem> {
      return await eventually(`end of run ${runId}`, async () => {
        const run = await this.run(runId);
        return hasEnded(run) ? run : null;
      });
    },
  };
}

async function kill9(command: RunningCommand): Promise<void> {
  command.child.kill('SIGKILL');
  await command.exited;
}

const ready = 'Ctrl-C stops everything.';

test('after `up` was killed, the next `up` continues the runs in progress, and `down` ends such runs', {
  timeout: 240_000,
}, async () => {
  const here = await openFolder('up');
  const first = here.start('up');
  await first.sees(ready);
  const runId = await here.begin(8);
  await kill9(first);
  const second = here.start('up');
  await second.sees(ready);
  expect(await here.untilEnded(runId)).toMatchObject({ state: 'SUCCEEDED' });
  await keepRuntime(here.dataDir);

  const left = await here.begin(300);
  await kill9(second);
  const stopped = await here.call(['down']);
  expect(stopped).toMatchObject({
    code: 0,
    output: expect.stringContaining('ended the sandboxes that an earlier worker left'),
  });
  expect(processesOf(here.dataDir)).toEqual([]);
  // No program runs here, so `run` starts the programs in the background.
  const background = await here.begin(8);
  expect(await here.run(left)).toMatchObject({ state: 'ERROR' });
  process.kill(JSON.parse(readFileSync(path.join(here.dataDir, 'supervisor.json'), 'utf8')).pid, 'SIGKILL');
  const { output } = await here.call(['run', '-'], '```sh\necho beside\n```');
  expect(output).toContain('│ beside');
  expect(await here.untilEnded(background)).toMatchObject({ state: 'SUCCEEDED' });
  expect(await here.call(['down'])).toMatchObject({ code: 0, output: 'stopped\n' });
  expect(processesOf(here.dataDir)).toEqual([]);
});

test(`none of ${runCount} runs is lost while the commands service and worker and their programs are killed at random moments`, {
  timeout: 120_000 + 20_000 * (runCount + killCount),
}, async () => {
  const service = await openFolder('service');
  const origin = `http://127.0.0.1:${service.env.RUNYARD_PORT}`;
  const startService = async () => {
    const command = service.start('service');
    await command.sees('Runyard is running');
    return command;
  };
  const commands = { service: await startService(), worker: undefined as RunningCommand | undefined };
  const key = readFileSync(path.join(service.dataDir, 'bootstrap-key'), 'utf8').trim();
  const workerDir = path.join(folder, 'worker');
  await giveRuntime(workerDir);
  const client = { RUNYARD_BASE_URL: origin, RUNYARD_API_KEY: key };
  const startWorker = async () => {
    const env = { ...client, RUNYARD_DATA_DIR: workerDir, RUNYARD_WORKER_SLOTS: '6' };
    const command = startCommand([runyard, 'worker'], { cwd: folder, env });
    await command.sees(`a worker for ${origin} runs`);
    return command;
  };
  commands.worker = await startWorker();

  const call = async <T>(method: string, route: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${origin}/api/v1${route}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${route} gave ${response.status}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  const run = (runId: string) => call<RunItem>('GET', `/agent/runs/${runId}`);
  const ids: string[] = [];
  const prompt = '```sh\necho one; sleep 4\n```\n```sh\necho two; sleep 4; echo three\n```';
  for (let n = 0; n < runCount; n += 1) {
    const created = await call<{ run_id: string }>('POST', '/agent/runs', {
      prompt,
      config: { idle_timeout_minutes: 0 },
    });
    ids.push(created.run_id);
  }

  const killed = { 'command service': 0, 'command worker': 0, service: 0, worker: 0 };
  for (let n = 0; n < killCount; n += 1) {
    await delay(500 + Math.random() * 4000);
    const name = Math.random() < 0.5 ? 'service' : 'worker';
    const command = commands[name] ?? expect.fail('no command');
    if (Math.random() < 0.6) {
      killed[`command ${name}`] += 1;
      await kill9(command);
      commands[name] = await (name === 'service' ? startService() : startWorker());
    } else {
      const children = processesOf(folder).filter(({ parent }) => parent === command.child.pid);
      if (children.length === 1) killed[name] += 1;
      for (const { pid } of children) process.kill(pid, 'SIGKILL');
    }
  }
  for (const runId of ids)
    await eventually(
      `end of run ${runId}`,
      () =>
        run(runId)
          .then(hasEnded)
          .catch(() => false),
      180_000,
    );
  process.stdout.write(`killed parents: ${JSON.stringify(killed)}\n`);
  const found = await judge({ run, call }, ids, new Set());
  expect(found).toMatchObject({ states: { SUCCEEDED: runCount }, failures: [], twice: [], incomplete: [] });

  commands.worker.child.kill('SIGINT');
  commands.service.child.kill('SIGTERM');
  expect(await Promise.all([commands.worker.exited, commands.service.exited])).toEqual([0, 0]);
  expect(processesOf(workerDir)).toEqual([]);
});
