import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseSettings } from '@runyard/contract/settings/settings';
import { pino } from 'pino';
import { type FakeWorkerService, startFakeWorkerService } from '../../../test/fakes/worker-service.ts';
import { compiledCode } from '../../../test/support/compiled-code.ts';
import { giveRuntime, keepRuntime } from '../../../test/support/head-start.ts';
import { programFile } from '../../../test/support/programs.ts';
import { probeSandbox } from '../src/backends/probe.ts';
import { startWorker, type Worker } from '../src/worker.ts';

export const fixtureAgent = fileURLToPath(new URL('./fixture-agent.ts', import.meta.url));

/**
 * Returns the isolation features of bubblewrap sandboxes on this machine. Returns `undefined` if such sandboxes do not work here.
 * Tests skip themselves if a feature that they need is missing.
 */
export const bubblewrapFeatures = () => featuresOf('bubblewrap');

/** Returns the isolation features of gVisor sandboxes on this machine. Returns `undefined` if such sandboxes do not work here. */
export const gvisorFeatures = () => featuresOf('gvisor');

async function featuresOf(backend: string): Promise<readonly string[] | undefined> {
  const parsed = parseSettings({ RUNYARD_SANDBOX: backend });
  if (!parsed.ok) return undefined;
  const { ok, level } = await probeSandbox(parsed.settings);
  return ok ? level.features : undefined;
}

/** Makes a data folder that the users of sandboxes can enter. Otherwise the worker would have its state root outside of this folder. */
export async function temporaryDataDir(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'runyard-worker-'));
  await chmod(folder, 0o711);
  return folder;
}

export interface TestWorker extends AsyncDisposable {
  readonly service: FakeWorkerService;
  readonly worker: Worker;
  readonly dataDir: string;
}

export interface TestWorkerOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly service?: FakeWorkerService;
  /** Path of the agent's main file. Default: the fixture agent. */
  readonly agentEntry?: string;
}

/** Returns the environment variables for a worker of a test. */
export function workerEnvironment(
  service: Pick<FakeWorkerService, 'url'>,
  dataDir: string,
  settings: TestWorkerOptions['settings'],
): Record<string, string> {
  return {
    RUNYARD_BASE_URL: service.url,
    RUNYARD_API_KEY: 'test-key',
    RUNYARD_WORKER_NAME: 'runyard-test',
    RUNYARD_DATA_DIR: dataDir,
    // Starts no agents that wait for runs, because most tests have only one run.
    RUNYARD_WARM_SANDBOXES: '0',
    ...settings,
  };
}

/** Time in which a worker process must start, also on a busy machine. */
const startLimitMs = 60_000;

/** Returns the name under which the runtime of the agent is stored for all tests of a test run. */
const runtimeName = (agentEntry: string, sandbox: string): string => {
  // Whole systems use the same runtimes of the real agent (`test/support/system.ts`).
  if (agentEntry !== fixtureAgent) return sandbox === 'docker' ? 'runtime-docker' : 'runtime';
  return `runtime-${path.basename(agentEntry)}-${sandbox}`;
};

/** Starts a worker with a fake service. Disposing of the result ends both and removes the data folder. */
export async function startTestWorker(options: TestWorkerOptions = {}): Promise<TestWorker> {
  const service = options.service ?? (await startFakeWorkerService());
  const dataDir = await temporaryDataDir();
  const parsed = parseSettings(workerEnvironment(service, dataDir, options.settings));
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const agentEntry = options.agentEntry ?? fixtureAgent;
  const runtime = runtimeName(agentEntry, parsed.settings.RUNYARD_SANDBOX);
  await giveRuntime(dataDir, runtime);
  const worker = await startWorker(parsed.settings, { log: pino({ level: 'silent' }), agentEntry });
  await service.waitFor('worker_hello');
  await keepRuntime(dataDir, runtime);
  return {
    service,
    worker,
    dataDir,
    async [Symbol.asyncDispose]() {
      await worker.stop();
      await service.close();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}

export interface WorkerProcess extends AsyncDisposable {
  readonly process: ChildProcess;
  /** Resolves with the exit code when the worker has ended. */
  readonly exited: Promise<number | null>;
}

/**
 * Starts a worker in a separate process. Resolves when the hello of the worker has arrived. Disposing of the result ends the worker
 * and removes its processes and files.
 */
export async function spawnTestWorker(
  service: FakeWorkerService,
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<WorkerProcess> {
  const hellos = (): number => service.messages.filter(({ type }) => type === 'worker_hello').length;
  const before = hellos();
  const environment = workerEnvironment(service, dataDir, settings);
  const parsed = parseSettings(environment);
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const runtime = runtimeName(fixtureAgent, parsed.settings.RUNYARD_SANDBOX);
  await giveRuntime(dataDir, runtime);
  const child = spawn(process.execPath, [await programFile('worker-process')], {
    env: { ...environment, PATH: process.env.PATH ?? '', ...compiledCode() },
    stdio: 'ignore',
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await Promise.race([
    until(() => hellos() > before, startLimitMs),
    exited.then((code) => {
      throw new Error(`the worker ended with exit code ${code}`);
    }),
  ]);
  await keepRuntime(dataDir, runtime);
  return {
    process: child,
    exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGINT');
      await exited;
    },
  };
}

/**
 * Waits until `holds` returns true. The pauses between two calls of `holds` grow to 100 ms, because `holds` often reads all processes
 * of the machine, which takes much processor time. Rejects after
 * `limitMs`.
 */
export async function until(holds: () => boolean | Promise<boolean>, limitMs = 60_000): Promise<void> {
  const startedAt = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > limitMs) throw new Error('it did not come true in time');
    await sleep(Math.min(Math.max(waitedMs / 5, 10), 100));
  }
}

/**
 * Returns how many processes of the machine have an argument that begins with `text`. Tests pass a mark that only their own processes
 * have.
 */
export const running = async (text: string): Promise<number> => processesWith(text).length;

/** Returns the same as `findProcesses` for `cmdline`, but synchronously, because a waiting test calls it often. */
export function processesWith(prefix: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    const text = readCommandLine(name);
    return text.includes(prefix) && text.split('\0').some((entry) => entry.startsWith(prefix)) ? [Number(name)] : [];
  });
}

function readCommandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}
