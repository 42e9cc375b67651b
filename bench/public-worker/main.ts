/**
 * Runs the program oz-agent-worker itself against this service: `main.ts PROGRAM BACKEND…`. `bin/test-public-worker` starts it. Docker
 * mode has a real engine, the sidecar image and a registry on loopback; Kubernetes mode has a real cluster of one node. Prints what each
 * backend did and how long it took, and writes `results.json`, the source of a table of docs/decisions/published-clients.md.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '@runyard/contract/environments/environments';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { openCuttingProxy } from '../../test/fakes/cutting-proxy.ts';
import { processesOf } from '../../test/support/processes-of.ts';
import { eventually, startSystem } from '../../test/support/system.ts';
import { grounds } from './grounds.ts';
import { recordResult } from './results.ts';

const [program = '', ...names] = process.argv.slice(2);
/** Time limit of each wait. The limit is longer than the time in which the service notices an ended agent that the worker does not report. */
const runLimitMs = 600_000;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function testBackend(name: string): Promise<void> {
  let passed = 0;
  const folder = await mkdtemp(path.join(tmpdir(), `runyard-public-${name}-`));
  const marks = path.join(folder, 'marks');
  await mkdir(marks);
  const ground = await (grounds[name] ?? unknownBackend(name))(folder, marks);
  const system = await startSystem({ workers: [], env: ground.serviceEnv ?? {} });
  /** The worker is connected through this proxy. The agents are connected to the service itself. */
  const line = await openCuttingProxy(system.baseUrl());
  let output = '';
  let stopWorker = async (_: NodeJS.Signals): Promise<void> => {};

  async function startWorker(): Promise<void> {
    const config = path.join(folder, 'worker.yaml');
    // JSON is YAML.
    await writeFile(config, JSON.stringify({ worker_id: 'my-worker', backend: ground.backend }));
    const url = system.baseUrl();
    const socket = `${line.url.replace('http', 'ws')}/api/v1/selfhosted/worker/ws`;
    const flags = [
      '--config-file',
      config,
      '--server-root-url',
      url,
      '--web-socket-url',
      socket,
      '--log-level',
      'debug',
    ];
    const more = { WARP_API_KEY: system.key, OTEL_METRICS_EXPORTER: 'none', ...ground.workerEnv };
    const worker = spawn(program, flags, {
      env: { PATH: process.env.PATH, HOME: folder, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const before = output.length;
    for (const stream of [worker.stdout, worker.stderr])
      stream.on('data', (text: Buffer) => {
        output += text;
      });
    const exited = once(worker, 'exit');
    stopWorker = async (signal) => {
      worker.kill(signal);
      await exited;
    };
    await untilConnected(before);
  }
  /** Waits until the worker has connected. `before`: length of `output` before the worker began to connect. */
  const untilConnected = async (before: number) => {
    const isConnected = async () => output.slice(before).includes('Successfully connected');
    await eventually('the connection of the worker', isConnected);
  };

  const environment = async (): Promise<object> => {
    if (ground.image === undefined) return {};
    const config = { name: 'Box', docker_image: ground.image };
    const { uid } = await system.call<Environment>('POST', '/agent/environments', { config }, 201);
    return { environment_id: uid };
  };
  const create = async (script: string, config: object = {}) =>
    await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, {
      config: { worker_host: 'my-worker', ...(await environment()), ...config },
    });
  const eventsOf = async (runId: string) =>
    (await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${runId}/timeline`)).events;
  async function untilDone(runId: string): Promise<void> {
    const run = await system.untilEnded(runId, runLimitMs);
    const said = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`).catch(String));
    if (run.state !== 'SUCCEEDED' || !said.includes('6 of 6'))
      throw new Error(`${run.state}: ${run.status_message?.message} ${said}`);
  }
  /** Runs a step and prints how long it took. */
  async function step(what: string, work: () => Promise<string>): Promise<void> {
    const began = performance.now();
    const found = await work();
    passed += 1;
    say(`${name}: ${what}: ${found} after ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }
  const untilGone = async (runId: string): Promise<string> => {
    await untilDone(runId);
    await system.until(runId, (run) => run.is_sandbox_running !== true, runLimitMs);
    const shutdownEvent = (await eventsOf(runId)).findLast(({ event_type }) => event_type === 'vm_shutdown');
    const cancelled = await readFile(path.join(folder, 'cancelled'), 'utf8').catch(() => '');
    return `${shutdownEvent?.payload?.message} (calls of the cancel command: ${cancelled.split('\n').length - 1})`;
  };

  const answer = 'report-artifact --help >/dev/null && echo "$((2 * 3)) of 6"';
  /** Returns a script that prints the answer only in the second attempt of the run. The first attempt sleeps until its agent is ended. */
  const waits = (mark: string) => `test -e ${mark} || { touch ${mark}; sleep 900; }; ${answer}`;
  const play = async () => {
    await untilDone(await create(answer));
    return 'SUCCEEDED';
  };
  async function stopAndResume(): Promise<string> {
    const mark = path.join(marks, 'begun');
    const runId = await create(waits(mark), { on_worker_loss: 'resume' });
    await eventually('the turn', async () => existsSync(mark), runLimitMs);
    await stopWorker('SIGTERM');
    await startWorker();
    await untilDone(runId);
    const resumed = (await eventsOf(runId)).filter(({ event_type }) => event_type === 'execution_resumed');
    return `resumed ${resumed.length} time(s) and SUCCEEDED`;
  }
  async function stopAndContinue(): Promise<string> {
    const mark = path.join(marks, 'begun');
    const runId = await create(`touch ${mark}; sleep 5; ${answer}`);
    await eventually('the turn', async () => existsSync(mark), runLimitMs);
    await stopWorker('SIGTERM');
    await untilDone(runId);
    await startWorker();
    return 'the task went on, and SUCCEEDED';
  }
  async function setupSteps(): Promise<string> {
    const runId = await create(answer);
    await untilDone(runId);
    if (output.includes('Failed to report setup event')) throw new Error('the service refused a setup step');
    const steps = (await eventsOf(runId)).filter(({ payload }) => payload?.kind === 'client');
    return steps.map(({ payload }) => payload?.name).join(', ') || 'none';
  }
  /** Creates a run whose turn takes some seconds, and calls `trouble` in the middle of the turn. */
  async function survive(name: string, trouble: () => Promise<void>): Promise<string> {
    const mark = path.join(marks, name);
    const runId = await create(`touch ${mark}; sleep 8; ${answer}`);
    await eventually('the turn', async () => existsSync(mark), runLimitMs);
    await trouble();
    await untilDone(runId);
    const isRetry = ({ event_type }: TimelineEvent) => /^execution_re/.test(event_type);
    return `SUCCEEDED after ${(await eventsOf(runId)).filter(isRetry).length} further executions`;
  }
  const killWorker = async () => {
    await stopWorker('SIGKILL');
    await startWorker();
  };
  const cutConnection = async () => {
    const before = output.length;
    line.cut();
    await untilConnected(before);
  };
  /** Cuts the connection after an assignment, before the service has got the claim. */
  async function loseClaim(): Promise<string> {
    const before = output.length;
    line.dropRequests();
    const runId = await create(answer);
    const assignments = () => output.slice(before).split(`Received task assignment: taskID=${runId}`).length - 1;
    await eventually('the assignment', async () => assignments() > 0, runLimitMs);
    await cutConnection();
    await untilDone(runId);
    return `SUCCEEDED after ${assignments()} assignments`;
  }
  const interruptRun = async () =>
    await endLoop('interrupted', {}, (runId) => system.call('POST', `/agent/runs/${runId}/interrupt`, {}));
  async function exceedDuration(): Promise<string> {
    const before = output.length;
    let runId = '';
    const ended = await endLoop('overdue', { max_duration_minutes: 0.1 }, async (id) => {
      runId = id;
    });
    await system.until(runId, (run) => run.is_sandbox_running !== true, runLimitMs);
    const answers = output.slice(before).split('sending: {"type":"execution_closed"').length - 1;
    return `${ended}; execution_closed was sent ${answers} time(s)`;
  }
  /** Calls `end` for a run whose command touches a file each second. Then waits until the command no longer touches the file. */
  async function endLoop(name: string, config: object, end: (runId: string) => Promise<unknown>): Promise<string> {
    const mark = path.join(marks, name);
    const runId = await create(`while touch ${mark}; do sleep 1; done`, config);
    await eventually('the turn', async () => existsSync(mark), runLimitMs);
    await end(runId);
    const { state } = await system.untilEnded(runId, runLimitMs);
    const isQuiet = async () => {
      const before = (await stat(mark)).mtimeMs;
      await sleep(3000);
      return (await stat(mark)).mtimeMs === before;
    };
    await eventually('the end of the commands', isQuiet, runLimitMs);
    return `${state}, and its commands ended`;
  }
  async function killAgent(): Promise<string> {
    const runId = await create('kill -9 $PPID; sleep 900');
    const run = await system.untilEnded(runId, runLimitMs);
    return `${run.state} (${run.status_message?.error_code}): ${run.status_message?.message}`;
  }

  try {
    await startWorker();
    await step('first run, which prepares the agent', play);
    await step('second run', play);
    await step('a run whose agent was killed', killAgent);
    await step('an interrupted run', interruptRun);
    await step('a run past its maximum duration', exceedDuration);
    await step('the setup steps of the worker', setupSteps);
    await step('a cut connection in a turn', async () => await survive('cut', cutConnection));
    await step('an assignment whose claim was lost', loseClaim);
    await step('SIGKILL of the worker in a turn', async () => await survive('killed', killWorker));
    if (name === 'command')
      await step('a run and the end of its execution', async () => await untilGone(await create(answer)));
    const continues = name === 'command' || name === 'kubernetes';
    await step('SIGTERM of the worker', continues ? stopAndContinue : stopAndResume);
    await recordResult(program, { backend: name, passed, failed: 0 });
  } catch (error) {
    await recordResult(program, { backend: name, passed, failed: 1 });
    say(output.slice(-20_000));
    throw error;
  } finally {
    await stopWorker('SIGKILL');
    await line.close();
    await system.stop();
    await ground.close();
    // In direct mode, agents of a worker that was killed are still there.
    for (const { pid } of processesOf(folder)) process.kill(pid, 'SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
}

function unknownBackend(name: string): never {
  throw new Error(`unknown backend ${name}: name some of ${Object.keys(grounds).join(', ')}`);
}

for (const name of names.length > 0 ? names : Object.keys(grounds)) await testBackend(name);
