/** Starts programs on the nodes, and starts each of them again whenever it ends, as systemd does. */
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { askToStop } from '@runyard/system/parent-input';
import { killHard } from '../support/system.ts';
import type { ChaosNode } from './network.ts';

export interface KeptProgram {
  readonly name: string;
  readonly node: ChaosNode;
  /** Returns the process id, or undefined while the program does not run. */
  pid(): number | undefined;
  /** Returns the ids of the program's process and of the processes that it started. Empty while the program does not run. */
  pids(): readonly number[];
  /** Kills the program with SIGKILL. The program starts again after `downMs`. */
  kill(downMs: number): Promise<void>;
  /** Stops the program and the processes that it started until `proceed` is called. */
  stall(): void;
  proceed(): void;
  /** Returns one line for each time that the program ended without a `kill` or `stop`. */
  exits(): readonly string[];
  /** Ends the program as an operator does. The program does not start again. */
  stop(): Promise<void>;
}

export interface ProgramOptions {
  readonly name: string;
  readonly node: ChaosNode;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** User and group of the program. Default: those of this process. */
  readonly account?: { readonly uid: number; readonly gid: number };
  readonly logFile: string;
}

const restartMs = 500;
const stopLimitMs = 40_000;

/** Starts the program. */
export function keepProgram({ name, node, command, env, account, logFile }: ProgramOptions): KeptProgram {
  const log = openSync(logFile, 'a');
  const [program = '', ...words] = node.enter.toSpliced(
    -1,
    0,
    ...(account ? [`--setuid=${account.uid}`, `--setgid=${account.gid}`] : []),
  );
  const exits: string[] = [];
  let child: ChildProcess | undefined;
  let downMs: number | undefined;
  let isStopping = false;
  const start = () => {
    const started = spawn(program, [...words, ...command], {
      env: { PATH: process.env.PATH ?? '', HOME: node.folder, ...env },
      stdio: ['pipe', log, log],
      cwd: node.folder,
    });
    started.stdin?.on('error', () => undefined);
    child = started;
    started.once('exit', async (code, signal) => {
      child = undefined;
      const waitMs = downMs ?? restartMs;
      if (downMs === undefined && !isStopping) exits.push(`${name}: ${signal ?? code}`);
      downMs = undefined;
      await delay(waitMs);
      if (!isStopping) start();
    });
  };
  start();
  const pids = () => (child?.pid === undefined ? [] : [child.pid, ...childrenOf(child.pid)]);
  const signalAll = (signal: NodeJS.Signals) => {
    for (const pid of pids()) trySignal(pid, signal);
  };
  return {
    name,
    node,
    pid: () => child?.pid,
    pids,
    kill: async (forMs) => {
      if (child === undefined) return;
      downMs = forMs;
      await killHard(child);
    },
    stall: () => signalAll('SIGSTOP'),
    proceed: () => signalAll('SIGCONT'),
    exits: () => exits,
    stop: async () => {
      isStopping = true;
      if (child === undefined) return;
      const stopped = child;
      const gone = new Promise<true>((resolve) => stopped.once('exit', () => resolve(true)));
      askToStop(stopped.stdin);
      if (await Promise.race([gone, delay(500)])) return;
      stopped.kill('SIGINT');
      if (await Promise.race([gone, delay(stopLimitMs)])) return;
      exits.push(`${name}: did not stop`);
      await killHard(stopped);
    },
  };
}

/** Sends a signal to a process that may have ended. */
export function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      // Begin after the last bracket, because the name of the program, in brackets, may contain spaces.
      const parent = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1];
      return Number(parent) === pid ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
