/** Programs of the environment that run beside the agent. */
import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import type { EnvironmentService } from '@runyard/contract/environments/services';
import { delay } from '@runyard/system/backoff';
import { monotonicMs } from '../builtin-modules.ts';
import { withoutNul } from '../commands/output-window.ts';
import { killProcesses, listDescendants, signalGroup } from '../commands/processes.ts';
import { runCommand } from '../commands/run-command.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import type { ServiceConnection } from '../service/connection.ts';
import { SetupFailure } from '../setup-failure.ts';
import {
  areStarted,
  isOfImage,
  newServiceWindow,
  type Running,
  startContainer,
  startedService,
} from './container-service.ts';

export interface ServicesOptions {
  readonly workspace: string;
  /** True: the sandbox has its own network, in which the ports of services are not reachable from the machine. */
  readonly isSeparate: boolean;
  /** The connection whose relay starts services from container images. */
  readonly connection: ServiceConnection;
  readonly step: SetupSteps;
  /** Aborts the start. */
  readonly signal: AbortSignal;
}

export interface RunServices {
  /** Starts the services one after another. Throws a `SetupFailure` if one of them ends or does not become ready. */
  start(
    services: readonly EnvironmentService[],
    env: Readonly<Record<string, string | undefined>>,
    options: ServicesOptions,
  ): Promise<void>;
  /** Reports the last lines that each service has printed since the previous report. */
  report(): Promise<void>;
  /** Returns the ids of all processes of the services in the sandbox. */
  processes(): number[];
  /** Ends the services. */
  stop(): Promise<void>;
}

/** Time for a service to become ready. The first start of a database may have to create its files. */
const readyTimeoutMs = 120_000;
/** Time for one run of the command `ready`, and for one attempt to connect. */
const attemptTimeoutMs = 10_000;
const attemptIntervalMs = 50;
const stopGraceMs = 500;
const drainMs = 200;

export function runServices(): RunServices {
  const running: Running[] = [];
  let isStopping = false;
  let report: SetupSteps | undefined;

  /** Adds a step with the last lines of the service to the timeline. */
  const reportOutput = async (name: string, output: string, error?: string) =>
    await report?.('service', name, async (told) => {
      if (output !== '') told.output_tail = output;
      if (error !== undefined) told.error = error;
    });

  async function startOne(
    service: EnvironmentService,
    env: Readonly<Record<string, string | undefined>>,
    { workspace, connection, step, signal }: ServicesOptions,
  ): Promise<void> {
    const { name, port, command = '' } = service;
    const isImage = isOfImage(service);
    const isStarted = isImage && areStarted(connection);
    await step('service', name, async (told) => {
      if (port !== undefined && !isStarted && (await accepts(port)))
        throw new SetupFailure(
          `The service ${name} cannot use port ${port}: another program of the sandbox listens there. Change the port in the environment's services.`,
        );
      const one = isStarted
        ? startedService(name)
        : isImage
          ? await startContainer(name, connection, signal)
          : startProgram(name, command, workspace, env);
      running.push(one);
      const failure = await untilReady(service, one, { workspace, env, signal });
      signal.throwIfAborted();
      const output = await one.takeOutput();
      if (output !== '') told.output_tail = output;
      if (failure !== undefined) {
        told.error = failure;
        const end = output === '' ? ' It printed nothing.' : `\nEnd of its output:\n${output.trimEnd()}`;
        throw new SetupFailure(
          `The service ${name} ${failure}.${end}\nFix the service in the environment's services, and run again.`,
        );
      }
      void one.exited.then(async () => {
        if (!isStopping) await reportOutput(`${name} ended`, await one.takeOutput(), one.ended());
      });
    });
  }

  return {
    async start(services, env, options) {
      if (!options.isSeparate)
        throw new SetupFailure(
          'The environment has services, but the sandboxes of this worker have no network of their own, so the services would listen on the machine. Use a worker with RUNYARD_SANDBOX=bubblewrap, gvisor, docker or kubernetes, or remove the services.',
        );
      report = options.step;
      // Services do not get the variable of the agent's socket: they report nothing, and must not end with a harness.
      const { RUNYARD_AGENT_SOCKET: _, ...others } = env;
      for (const service of services) await startOne(service, { ...others, ...service.env }, options);
    },
    async report() {
      for (const { name, takeOutput } of running) {
        const output = await takeOutput();
        if (output !== '') await reportOutput(`${name}: output`, output);
      }
    },
    processes: () => listDescendants(running.flatMap(({ pid }) => pid ?? [])),
    async stop() {
      isStopping = true;
      for (const { stop } of running) stop?.();
      const live = running.filter(({ pid, ended }) => pid !== undefined && ended() === undefined);
      if (live.length === 0) return;
      const first = live.flatMap(({ pid }) => pid ?? []);
      const pids = listDescendants(first);
      for (const pid of first) signalGroup(pid, 'SIGTERM');
      await Promise.race([Promise.all(live.map(({ exited }) => exited)), delay(stopGraceMs)]);
      killProcesses(pids);
    },
  };
}

function startProgram(
  name: string,
  command: string,
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
): Running {
  const child = spawn('/bin/sh', ['-c', 'exec "$@" 2>&1', 'sh', 'sh', '-c', command], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  let window = newServiceWindow();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const stdout = child.stdout as Socket | null;
  stdout?.on('data', (chunk: Buffer) => window.push(Buffer.from(withoutNul(decoder.decode(chunk, { stream: true })))));
  // The service must not keep the agent alive.
  stdout?.unref();
  child.unref();
  let ended: string | undefined;
  const exited = new Promise<void>((resolve) => {
    const end = (how: string) => {
      ended ??= how;
      // The last output may still be in the pipe, and a process that the program left may keep the pipe open.
      const close = new Promise<void>((closed) => stdout?.once('close', closed));
      void Promise.race([close, delay(drainMs)]).then(resolve);
    };
    child.on('error', (error) => end(`could not be started: ${error.message}`));
    child.on('exit', (code, signal) => end(signal === null ? `exited with code ${code}` : `was ended by ${signal}`));
  });
  return {
    name,
    pid: child.pid,
    takeOutput: async () => {
      const text = window.tailText();
      window = newServiceWindow();
      return text;
    },
    ended: () => ended,
    exited,
  };
}

/** Waits until the service is ready. Returns the reason if it does not become ready. */
async function untilReady(
  { ready, port }: EnvironmentService,
  one: Running,
  {
    workspace,
    env,
    signal,
  }: Pick<ServicesOptions, 'workspace' | 'signal'> & { readonly env: Readonly<Record<string, string | undefined>> },
): Promise<string | undefined> {
  const deadline = monotonicMs() + readyTimeoutMs;
  let lastAnswer = '';
  for (;;) {
    const isListening = port === undefined || (await accepts(port));
    if (isListening && ready !== undefined) {
      const argv = ['sh', '-c', ready] as const;
      const result = await runCommand({ argv: [...argv], cwd: workspace, env, signal, timeoutMs: attemptTimeoutMs });
      lastAnswer = result.outcome === 'exited' ? `exited with code ${result.exitCode}` : result.outcome;
      if (result.outcome === 'exited' && result.exitCode === 0 && one.ended() === undefined) return undefined;
    } else if (isListening && one.ended() === undefined) return undefined;
    const ended = one.ended();
    if (ended !== undefined) {
      await one.exited;
      return `${ended} before it was ready`;
    }
    if (monotonicMs() > deadline) {
      const reason = isListening ? `its command ready ${lastAnswer}` : `nothing accepts connections on port ${port}`;
      return `is not ready after ${readyTimeoutMs / 1000} s: ${reason}`;
    }
    await delay(attemptIntervalMs, signal);
  }
}

/**
 * Returns whether a program accepts connections on this port of loopback. Reads the greeting of the program and closes the connection
 * without a reset, because some programs end after a reset.
 */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: attemptTimeoutMs });
    socket.once('connect', () => {
      socket.resume().end();
      socket.unref();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
    socket.once('timeout', () => {
      socket.destroy();
      resolve(false);
    });
  });
}
