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
  /** Makes the sandbox with these options and starts the command in it. May be called only once. */
  release(options: readonly string[]): void;
  /** Resolves when the command has written to `runTokenDescriptor`. Rejects if bwrap ends before that. */
  readonly spoke: () => Promise<void>;
  /** Sends the text that the command reads from `runTokenDescriptor`. May be called only once, before or after `release`. */
  give(text: string): void;
  /** Returns false when bwrap has ended. */
  readonly isAlive: () => boolean;
  /** Exit code of the agent and the end of its output. Resolves when bwrap has ended, and with it all processes in the sandbox. */
  readonly ended: Promise<{ exitCode: number; outputTail: string }>;
  kill(how: 'terminate' | 'kill'): void;
}

export interface BubblewrapStart {
  readonly program: string;
  /** Name of the process. It shows which sandbox the process belongs to, and the sandbox cannot change it. */
  readonly label: string;
  /** First program in the sandbox. It is the same for all sandboxes; only the options of `release` differ. */
  readonly command: readonly string[];
  /** User of the sandbox; set only if the worker is root. */
  readonly uid?: number;
  readonly cgroup?: Cgroup;
  /** Filter of system calls, for the options that name `filterDescriptor`. */
  readonly filter?: Buffer | undefined;
}

/**
 * Starts bwrap with an empty environment. bwrap first reads all its options from descriptor 3. Before `release` sends the options, bwrap
 * can be moved into its cgroup. It can also be started ahead of time, because forking a worker's memory takes milliseconds
 * (`bench/sandbox.md`). If the worker dies before `release`, the pipe closes, and bwrap ends because it has no options. Must be called on
 * the main thread: With `--die-with-parent`, bwrap ends when the thread that started it ends.
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
  // Ignores write errors. They occur if bwrap ends early; the output of bwrap has the reason.
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
 * lives, no other process of a sandbox gets the pids 1 and 2 of its namespace.
 */
export function isOfAgent(pid: number): boolean {
  try {
    // NSpid has one pid for each namespace, from the worker's to the innermost (proc_pid_status(5)). Programs in a sandbox cannot make
    // namespaces.
    const numbers = /^NSpid:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.split(/\s+/) ?? [];
    return numbers.length === 1 || (numbers.length === 2 && Number(numbers[1]) <= 2);
  } catch {
    return false;
  }
}
