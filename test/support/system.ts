/** Starts a whole system in the way users run it: service and worker as processes, with a real database and real sandboxes. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunItem } from '@runyard/contract/runs/runs';
import { askToStop } from '@runyard/system/parent-input';
import { serviceNodeFlags } from '../../packages/cli/src/supervise/stack.ts';
import { endSandboxes } from '../../packages/worker/src/backends/end-sandboxes.ts';
import { unmountBelow } from '../../packages/worker/src/state/disk-image.ts';
import { ask } from './ask.ts';
import { compiledCode } from './compiled-code.ts';
import { giveDatabase, giveRuntime, keepRuntime } from './head-start.ts';
import { type Program, programFile, quickStartFlags, sourceOf } from './programs.ts';
import { hasEnded } from './run-kinds.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Null if a sandbox can be made; otherwise the reason, for the name of a skipped test. */
export const sandboxProblem: string | null = (() => {
  try {
    execFileSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true'], { stdio: 'pipe' });
    return null;
  } catch (error) {
    return `bubblewrap does not work here: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
  }
})();

export interface SystemOptions {
  /** Settings of service and worker. */
  readonly env?: Readonly<Record<string, string>>;
  /** An existing data folder. Default: a new folder. */
  readonly dataDir?: string;
  /** URL of the database. Default: the embedded database in the data folder. */
  readonly databaseUrl?: string;
  /** Options of the service's Node. Default: those of production for sources, `quickStartFlags` for a bundle. */
  readonly serviceNodeFlags?: readonly string[];
  /** Starts the programs from their sources, as users do. Default: from a bundle, which starts faster and needs less memory. */
  readonly fromSources?: true;
  /** Names of the workers to start. Default: one worker. */
  readonly workers?: readonly string[];
  /** User and group id as which workers run. Default: those of this process. */
  readonly workerUser?: number;
}

export interface System {
  readonly dataDir: string;
  readonly key: string;
  baseUrl(): string;
  service(): ChildProcess;
  worker(name?: string): ChildProcess;
  startService(): Promise<void>;
  /** `env`: further settings of this worker. */
  startWorker(name?: string, env?: Readonly<Record<string, string>>): void;
  /** Calls the API and returns its JSON. Throws if the status is not the expected one. */
  call<T>(method: string, path: string, body?: unknown, status?: number): Promise<T>;
  /** Creates a run and returns its id. The sandbox ends with the run, unless `more.config` sets `idle_timeout_minutes`. */
  createRun(prompt: string, more?: { readonly config?: object; readonly [member: string]: unknown }): Promise<string>;
  run(runId: string): Promise<RunItem>;
  untilEnded(runId: string, timeoutMs?: number): Promise<RunItem>;
  until(runId: string, accept: (run: RunItem) => boolean, timeoutMs?: number): Promise<RunItem>;
  /** Returns the log of the programs. */
  logs(): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Time limit for the start of a program on a loaded machine. A start includes initdb and the migrations, and for the first worker the
 * bundling of the agent.
 */
const startLimitMs = 120_000;

/** Longest pause of a poll. Each request of a poll takes processor time from the program that the test waits for. */
const longestPauseMs = 500;

/**
 * Calls `probe` until it returns a value. Throws an error with `what` after `timeoutMs`. Each pause is half of the time since the
 * beginning, so that short waits end soon and long waits take little processor time. In tests of whole systems, polls at short
 * intervals take more processor time than the runs. `longestMs`: the longest pause, which may be short if the probe costs little.
 */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | null | undefined | false>,
  timeoutMs = 90_000,
  longestMs = longestPauseMs,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    const found = await probe();
    if (found !== null && found !== undefined && found !== false) return found;
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > timeoutMs) throw new Error(`${what} did not happen within ${timeoutMs} ms`);
    await delay(Math.min(Math.max(waitedMs / 2, 50), longestMs));
  }
}

/** Kills the process with SIGKILL. Resolves when the process has ended. */
export async function killHard(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}

/** Returns the name of the agent's runtime, which differs between containers and other sandboxes. */
const runtimeName = ({ env }: SystemOptions): string =>
  env?.RUNYARD_SANDBOX === 'docker' ? 'runtime-docker' : 'runtime';

/** Starts the system. Resolves when the service answers and the worker is connected. */
export async function startSystem(options: SystemOptions = {}): Promise<System> {
  const dataDir = (await options.dataDir) ?? (await mkdtemp(path.join(tmpdir(), 'runyard-system-')));
  const key = 'ryk_test-of-the-whole-system-0123456789';
  const log = openSync(path.join(dataDir, 'programs.log'), 'a');
  const common = {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '/',
    RUNYARD_DATA_DIR: dataDir,
    RUNYARD_LOG: 'info',
    ...compiledCode(),
    ...options.env,
  };
  let base = '';
  let port = '0';
  let service: ChildProcess | undefined;
  const workers = new Map<string, ChildProcess>();
  const defaultWorker = options.workers?.[0] ?? 'runyard-test';

  // Another user cannot read the bundle, which is in a folder of this user.
  const scriptOf = async (program: Program) =>
    options.fromSources || (program === 'worker' && options.workerUser !== undefined)
      ? sourceOf(program)
      : await programFile(program);
  const scripts = { service: await scriptOf('service'), worker: await scriptOf('worker') };
  /** Data folder of a worker. The default worker shares the folder of the service, if it is the same user. */
  const folderOf = (name: string) =>
    name === defaultWorker && options.workerUser === undefined ? dataDir : path.join(dataDir, name);
  const start = (program: Program, env: Record<string, string>) => {
    const user = program === 'worker' ? options.workerUser : undefined;
    const ofProduction = program === 'service' ? serviceNodeFlags : [];
    const ofBundle = scripts[program] === sourceOf(program) ? ofProduction : quickStartFlags;
    const flags = (program === 'service' ? options.serviceNodeFlags : undefined) ?? ofBundle;
    return spawn(process.execPath, [...flags, scripts[program], '--stop-with-parent'], {
      env: { ...common, ...env },
      stdio: ['pipe', log, log],
      cwd: root,
      ...(user === undefined ? {} : { uid: user, gid: user }),
    });
  };

  const call: System['call'] = async (method, route, body, status = 200) => {
    const answer = await ask(`${base}/api/v1${route}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.status !== status) throw new Error(`${method} ${route} gave ${answer.status}: ${answer.text}`);
    return answer.text === '' ? undefined : JSON.parse(answer.text);
  };

  const system: System = {
    dataDir,
    key,
    baseUrl: () => base,
    service: () => service as ChildProcess,
    worker: (name = defaultWorker) => workers.get(name) as ChildProcess,
    startService: async () => {
      await rm(path.join(dataDir, 'service.json'), { force: true });
      const child = start('service', {
        RUNYARD_PORT: port,
        RUNYARD_BOOTSTRAP_KEY: key,
        ...(options.databaseUrl ? { RUNYARD_DATABASE_URL: options.databaseUrl } : {}),
      });
      service = child;
      const file = await eventually(
        'start of the service',
        async () => {
          if (child.exitCode !== null)
            throw new Error(`the service exited with ${child.exitCode}:\n${await system.logs()}`);
          return await readFile(path.join(dataDir, 'service.json'), 'utf8').catch(() => null);
        },
        startLimitMs,
        50,
      );
      base = JSON.parse(file).base_url;
      port = new URL(base).port;
    },
    startWorker: (name = defaultWorker, more = {}) => {
      const env = { RUNYARD_BASE_URL: base, RUNYARD_API_KEY: key, RUNYARD_WORKER_NAME: name };
      workers.set(name, start('worker', { ...env, RUNYARD_DATA_DIR: folderOf(name), ...more }));
    },
    call,
    createRun: async (prompt, more = {}) =>
      (
        await call<{ run_id: string }>('POST', '/agent/runs', {
          prompt,
          ...more,
          config: { idle_timeout_minutes: 0, ...more.config },
        })
      ).run_id,
    run: (runId) => call<RunItem>('GET', `/agent/runs/${runId}`),
    until: async (runId, accept, timeoutMs) => {
      let seen: RunItem | null = null;
      const probe = async () => {
        seen = await system.run(runId).catch(() => null);
        return seen && accept(seen) ? seen : null;
      };
      return await eventually(`what is awaited of run ${runId}`, probe, timeoutMs).catch((error: Error) => {
        error.message += `; the run is ${JSON.stringify([seen?.state, seen?.status_message])}`;
        throw error;
      });
    },
    untilEnded: (runId, timeoutMs) => system.until(runId, hasEnded, timeoutMs),
    logs: () => readFile(path.join(dataDir, 'programs.log'), 'utf8'),
    stop: async () => {
      for (const child of [...workers.values(), service]) if (child) await stopProgram(child);
      // End sandboxes that a killed worker has left for the next worker.
      // A worker of another user has ended its sandboxes when it stopped.
      if (options.workerUser === undefined) for (const name of workers.keys()) await endSandboxes(folderOf(name));
      // Find other folders with sandboxes in the log: if other users cannot enter the data folder, a worker that runs as root puts its
      // sandboxes elsewhere and logs the place.
      const lines = (await system.logs()).split('\n').filter((line) => line.includes('"sandboxes live here"'));
      for (const folder of new Set(lines.map((line) => String(JSON.parse(line).folder)))) {
        // Unmount the disks of sandboxes that a killed worker has left.
        await unmountBelow(folder);
        await rm(folder, { recursive: true, force: true });
      }
      // Retry, because a killed process may still write files while it ends.
      await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
    },
  };
  try {
    if (options.dataDir === undefined && options.databaseUrl === undefined) await giveDatabase(dataDir);
    if (options.dataDir === undefined && options.workers?.length !== 0 && options.workerUser === undefined)
      await giveRuntime(dataDir, runtimeName(options));
    await system.startService();
    const names = options.workers ?? [defaultWorker];
    if (options.workerUser !== undefined) {
      // The user must be able to enter the folder.
      await chmod(dataDir, 0o711);
      for (const name of names) {
        await mkdir(folderOf(name));
        await giveRuntime(folderOf(name), runtimeName(options));
        execFileSync('chown', ['-R', `${options.workerUser}:${options.workerUser}`, folderOf(name)]);
      }
    }
    for (const name of names) system.startWorker(name);
    if (workers.size > 0) {
      const connected = async () => (await system.logs()).includes('worker connected');
      await eventually('connection of the worker', connected, startLimitMs);
      await keepRuntime(dataDir, runtimeName(options));
    }
  } catch (error) {
    const logs = await system.logs();
    await system.stop();
    throw new Error(
      `the system did not start: ${error instanceof Error ? error.message : error}\n${logs.slice(-4000)}`,
    );
  }
  return system;
}

/**
 * Asks the program to stop through its input, after half a second sends SIGINT, and after 30 more seconds SIGKILL. A worker that stops
 * ends its sandboxes.
 */
async function stopProgram(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<true>((resolve) => child.once('exit', () => resolve(true)));
  askToStop(child.stdin);
  if (await Promise.race([gone, delay(500)])) return;
  child.kill('SIGINT');
  // Wait longer than the 20 s that the database may need for its last checkpoint. If the service were killed earlier, the database
  // would still write to the data folder while the test removes the folder.
  if (await Promise.race([gone, delay(30_000)])) return;
  await killHard(child);
}
