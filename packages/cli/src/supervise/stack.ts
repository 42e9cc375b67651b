/** Starts first the service and then the worker, keeps both running, and stops them in the opposite order. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Settings } from '@runyard/contract/settings/settings';
import { type DataFolder, root } from '../data-folder/installation.ts';
import { readServiceFile } from '../data-folder/service-file.ts';
import { Failure } from '../exits/failure.ts';
import { checkPort, portProblem, reachableOrigin } from './address.ts';
import { readReadiness } from './answers.ts';
import { childEnvironment } from './child-environment.ts';
import { keepRunning, type RestartedProgram } from './keep-running.ts';
import { readLogTail, rotateFullLog, sizeOf } from './log-file.ts';
import { describeExit, type Program, startProgram } from './program.ts';

/**
 * Flags of Node for the service, which save memory. The first flag limits the size of each semi-space, where V8 puts new objects, to 4
 * MB. Without this limit, many requests or streams make the semi-spaces several times as large, and they stay large while the service
 * is idle. With the second flag, V8 collects garbage when the space for old objects has grown by half. See
 * `docs/decisions/node-flags.md`.
 */
export const serviceNodeFlags: readonly string[] = ['--max-semi-space-size=4', '--heap-growing-percent=50'];

export interface StackStart {
  readonly settings: Settings;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: DataFolder;
  readonly service: boolean;
  readonly worker: boolean;
  /** Receives messages for the user, such as restarts. */
  readonly report: (message: string) => void;
  /** Aborts a start that is in progress. */
  readonly signal: AbortSignal;
}

export interface Stack {
  /** Origin with which programs on this machine reach the service, without `/api/v1`. */
  readonly origin: string;
  /** Lets the worker finish its runs. Resolves when the worker has ended. */
  drain(): Promise<void>;
  /**
   * Ends the worker as for an upgrade: the worker leaves its sandboxes to the next worker, and sandboxes that can run without a worker
   * continue.
   */
  leave(): Promise<void>;
  /** Stops the worker, then calls `between`, and then stops the service. Resolves when both have ended. */
  stop(between?: () => Promise<void>): Promise<void>;
}

/** Time limit for the start of a program. It is long, because the first start creates a database, perhaps on a slow disk. */
const serviceStartMs = 90_000;
/**
 * A worker that has not stopped after this time is killed. The time is long enough for a normal stop, because a killed worker cannot clean
 * up its sandboxes.
 */
const workerGraceMs = 6_000;
/**
 * A service that has not stopped after this time is killed. The time is long, because the last checkpoint of the service's database may
 * take 20 s.
 */
const serviceGraceMs = 30_000;
const logCheckMs = 60_000;

/** Starts the programs. @throws Failure with the last log lines of the program if a program does not start */
export async function startStack(start: StackStart): Promise<Stack> {
  const { settings, folder } = start;
  const logFile = (name: string) => path.join(folder.logs, `${name}.log`);
  const running: RestartedProgram[] = [];
  const stop = async (graces: readonly number[]) => {
    // Stops the worker first, because its sandboxes report their end to the service.
    for (const [index, kept] of running.toReversed().entries()) await kept.stop(graces[index] ?? serviceGraceMs);
  };
  const names: string[] = [];
  let origin = settings.RUNYARD_BASE_URL ?? reachableOrigin(settings.RUNYARD_HOST, settings.RUNYARD_PORT);

  try {
    if (start.service) {
      await formerServiceGone(start);
      const found = await checkPort(settings.RUNYARD_HOST, settings.RUNYARD_PORT);
      if (!found.ok) throw new Failure(portProblem(settings.RUNYARD_HOST, settings.RUNYARD_PORT, found.code));
      origin = reachableOrigin(settings.RUNYARD_HOST, found.port);
      const startService = serviceStarter(start, { port: found.port, origin, logFile: logFile('service') });
      const first = await startService(start.signal);
      names.push('service');
      running.push(keepRunning({ name: 'service', first, restart: startService, report: start.report }));
    }
    if (start.worker) {
      const startWorker = workerStarter(start, origin, logFile('worker'));
      const first = await startWorker(start.signal);
      names.push('worker');
      running.push(keepRunning({ name: 'worker', first, restart: startWorker, report: start.report }));
    }
  } catch (error) {
    await stop([serviceGraceMs]);
    throw error;
  }

  const logs = setInterval(() => {
    for (const name of names) {
      try {
        rotateFullLog(logFile(name));
      } catch (error) {
        // Only reports the error, for example of a full disk, because the next check tries again.
        start.report(`the ${name}'s log cannot be rotated: ${error instanceof Error ? error.message : error}`);
      }
    }
  }, logCheckMs);
  return {
    origin,
    async drain() {
      await running.at(-1)?.endBy('SIGUSR2');
    },
    async leave() {
      await running.at(-1)?.endBy('SIGTERM');
    },
    async stop(between) {
      clearInterval(logs);
      if (start.worker) await running.at(-1)?.stop(workerGraceMs);
      await between?.();
      await stop(start.worker ? [workerGraceMs, serviceGraceMs] : [serviceGraceMs]);
    },
  };
}

type StartProgram = (signal: AbortSignal) => Promise<Program>;

/** Returns a function that starts the service and waits until it is ready. It reports each reason for which the service is not ready yet. */
function serviceStarter(
  { env, folder, report }: StackStart,
  { port, origin, logFile }: { readonly port: number; readonly origin: string; readonly logFile: string },
): StartProgram {
  const program = {
    nodeFlags: serviceNodeFlags,
    script: path.join(root, 'packages/service/src/main.ts'),
    args: [],
    env: childEnvironment('service', env, { RUNYARD_DATA_DIR: folder.path, RUNYARD_PORT: String(port) }),
    cwd: root,
    logFile,
  };
  let reported: string | null = null;
  const isReady = async ({ pid }: Program) => {
    if (readServiceFile(folder.serviceFile)?.pid !== pid) return false;
    const { answered, ready, problem } = await readReadiness(origin, 2000);
    if (!answered || ready) return ready;
    if (problem !== reported) report(`the service is not ready yet: ${problem}; its log says more (${logFile})`);
    reported = problem;
    return 'waiting';
  };
  return (signal) => startUntilReady(program, 'service', isReady, signal);
}

/** Returns a function that starts the worker. */
function workerStarter({ env, settings, folder }: StackStart, origin: string, logFile: string): StartProgram {
  const { RUNYARD_API_KEY: key, RUNYARD_BOOTSTRAP_KEY: ofService } = settings;
  const program = {
    script: path.join(root, 'packages/worker/src/main.ts'),
    args: [],
    env: childEnvironment('worker', env, {
      RUNYARD_DATA_DIR: folder.path,
      RUNYARD_BASE_URL: origin,
      ...(key || !ofService ? {} : { RUNYARD_API_KEY: ofService }),
    }),
    cwd: root,
    logFile,
  };
  return (signal) => startUntilReady(program, 'worker', settled(300), signal);
}

/**
 * If the supervisor of an earlier service of this data folder was killed, waits until this service has ended. The service ends by itself as
 * soon as its database has stopped.
 */
async function formerServiceGone({ folder, report, signal }: StackStart): Promise<void> {
  const deadline = performance.now() + serviceGraceMs;
  const former = readServiceFile(folder.serviceFile);
  if (former === null) return;
  report(`the service of an earlier start (process ${former.pid}) still stops; waiting for it`);
  while (readServiceFile(folder.serviceFile) !== null && performance.now() < deadline) {
    if (signal.aborted) throw new Failure('stopped', 130);
    await sleep(25);
  }
}

/**
 * Returns a check that succeeds after `milliseconds`. A program that still runs after this time counts as started. A program with wrong
 * settings or without a sandbox backend ends earlier.
 */
function settled(milliseconds: number): () => Promise<boolean> {
  const startedAt = performance.now();
  return async () => performance.now() - startedAt >= milliseconds;
}

async function startUntilReady(
  start: Parameters<typeof startProgram>[0],
  name: string,
  isReady: (program: Program) => Promise<boolean | 'waiting'>,
  signal: AbortSignal,
): Promise<Program> {
  const logStart = sizeOf(start.logFile);
  const program = await startProgram(start);
  let deadline = performance.now() + serviceStartMs;
  const fail = (what: string) => {
    const tail = readLogTail(start.logFile, logStart);
    return new Failure(`the ${name} ${what}${tail ? `:\n${tail}` : ''}\n(log: ${start.logFile})`);
  };
  try {
    for (;;) {
      const found = await isReady(program);
      if (found === true) break;
      if (signal.aborted) throw new Failure('stopped', 130);
      if (program.hasExited()) throw fail(`did not start (${describeExit(await program.exited)})`);
      if (performance.now() > deadline) throw fail(`was not ready after ${serviceStartMs / 1000} s`);
      // Extends the deadline again and again while the service waits for its database or for the operator.
      if (found === 'waiting') deadline = performance.now() + serviceStartMs;
      await sleep(found === 'waiting' ? 250 : 25);
    }
    if (program.hasExited()) throw fail(`did not start (${describeExit(await program.exited)})`);
    return program;
  } catch (error) {
    await program.stop(serviceGraceMs);
    throw error;
  }
}
