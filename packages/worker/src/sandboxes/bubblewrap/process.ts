import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Duplex, Readable, Writable } from 'node:stream';
import { killProcesses } from '../../state/processes.ts';
import type { Cgroup } from '../cgroups/group.ts';
import { exitCodeOf } from '../exit-code.ts';
import { keepOutputTail } from '../output-tail.ts';
import { SandboxError } from '../sandbox.ts';

/** A running bwrap. It has no sandbox before `release`. */
export interface BubblewrapProcess {
  readonly pid: number;
  /** Returns the first process in the sandbox; `undefined` if there is no process. */
  readonly init: () => number | undefined;
  /** Makes the sandbox with these options and starts the command in it. Once. */
  release(options: readonly string[]): void;
  /** Resolves when the command has written to that descriptor; rejects when bwrap has ended before. */
  readonly spoke: () => Promise<void>;
  /** Sends the command the text that it reads from `runTokenDescriptor`. Once; before or after `release`. */
  give(text: string): void;
  /** Exit code of the agent and the end of its output; resolves when all processes of the sandbox have ended. */
  readonly isAlive: () => boolean;
  /** Exit code of the agent and the end of its output, when everything in the sandbox is gone. */
  readonly ended: Promise<{ exitCode: number; outputTail: string }>;
  kill(how: 'terminate' | 'kill'): void;
}

export interface BubblewrapStart {
  readonly program: string;
  /** Name of the process. It shows which sandbox the process belongs to, and the sandbox cannot change it. */
  readonly label: string;
  /** The same for all sandboxes: differences are in the options of `release`. */
  readonly command: readonly string[];
  /** User to run as, where we are root. */
  readonly uid?: number;
  readonly cgroup?: Cgroup;
  /** Filter of system calls, for the options that name `filterDescriptor`. */
  readonly filter?: Buffer | undefined;
}

/**
 * Starts bwrap with an empty environment. Before it does anything else, it reads its options from descriptor 3 to the end. So it can be
 * moved into its cgroup first, and it can be started ahead of time, because forking a worker's memory takes milliseconds
 * (`bench/sandbox.md`). If a worker dies in between, the pipe closes, and bwrap ends without options. Must be called on the main thread:
 * `--die-with-parent` follows the thread that started it.
 */
export async function startBubblewrap(start: BubblewrapStart): Promise<BubblewrapProcess> {
  const user = start.uid === undefined ? {} : { uid: start.uid, gid: start.uid };
  const child = spawn(start.program, ['--args', '3', '--', ...start.command], {
    argv0: start.label,
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', ...(start.filter === undefined ? [] : (['pipe'] as const))],
    ...user,
  });
  const pid = child.pid;
  if (pid === undefined) {
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => child.once('error', resolve));
    throw new SandboxError(
      'spawn',
      'bubblewrap_not_started',
      `${start.program} could not be started (${error.code}): run \`runyard doctor\``,
      { cause: error },
    );
  }
  child.on('error', () => {});
  const [, stdout, stderr, options, token, filter] = child.stdio as unknown as [
    ...[null, Readable, Readable, Writable, Duplex],
    Writable | undefined,
  ];
  // If bwrap ends early, it closes its side; its output has the reason.
  options.on('error', () => {});
  token.on('error', () => {});
  filter?.on('error', () => {});
  filter?.end(start.filter);
  const tail = keepOutputTail([stdout, stderr]);
  const ended = new Promise<{ exitCode: number; outputTail: string }>((resolve) => {
    child.once('exit', () => tail.close());
    child.once('close', (code, signal) => {
      resolve({ exitCode: exitCodeOf(code, signal), outputTail: tail.text() });
    });
  });
  try {
    await start.cgroup?.add(pid);
  } catch (error) {
    options.destroy();
    token.destroy();
    filter?.destroy();
    child.kill('SIGKILL');
    throw new SandboxError(
      'spawn',
      'cgroup_refused',
      `the sandbox could not be put under its limits: ${(error as Error).message}`,
      { cause: error },
    );
  }
  return {
    pid,
    init: () => childrenOf(pid)[0],
    ended,
    isAlive: () => child.exitCode === null && child.signalCode === null,
    release: (list) => void options.end(list.map((option) => `${option}\0`).join('')),
    spoke: () =>
      new Promise((resolve, reject) => {
        token.once('data', () => resolve()).once('close', () => reject(new Error('the program has ended')));
      }),
    give: (text) => void token.end(text),
    kill: (how) => kill(child, how),
  };
}

/** Signals init, the child of bwrap. When init ends, the kernel ends the whole pid namespace, and bwrap ends after that. */
function kill(child: ChildProcess, how: 'terminate' | 'kill'): void {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const inits = childrenOf(child.pid);
  if (how === 'terminate') {
    for (const pid of inits) {
      try {
        process.kill(pid, 'SIGTERM');
      } catch {
        // The process has just ended.
      }
    }
    return;
  }
  killProcesses(inits);
  if (inits.length === 0) child.kill('SIGKILL');
  // If init does not end at once, killing bwrap also ends init (`--die-with-parent`).
  setTimeout(() => child.kill('SIGKILL'), 500).unref();
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/**
 * Returns true if the process is bubblewrap, the first process of the sandbox, or the agent, which that process starts. While the agent
 * lives, the kernel gives these numbers to no other process of a sandbox.
 */
export function isOfAgent(pid: number): boolean {
  try {
    // One number for each namespace, from ours to the innermost one (proc_pid_status(5)). A sandbox makes no namespaces.
    const numbers = /^NSpid:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.split(/\s+/) ?? [];
    return numbers.length === 1 || (numbers.length === 2 && Number(numbers[1]) <= 2);
  } catch {
    return false;
  }
}
