import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Duplex, Readable, Writable } from 'node:stream';
import { killProcesses } from '../../state/processes.ts';
import type { Cgroup } from '../cgroups/group.ts';
import { exitCodeOf } from '../exit-code.ts';
import { keepOutputTail } from '../output-tail.ts';
import { SandboxError } from '../sandbox.ts';

/** A running bwrap. It makes the sandbox when `release` is called. */
export interface BubblewrapProcess {
  readonly pid: number;
  /** Returns the pid of the first process in the sandbox, or `undefined` if this process does not exist. */
  readonly init: () => number | undefined;
  /** Makes the sandbox with these options and starts the command in it. May be called only once. */
  release(options: readonly string[]): void;
  /** Resolves when the command has written to `runTokenDescriptor`. Rejects if bwrap ends before that. */
  readonly spoke: () => Promise<void>;
  /** Sends the text that the command reads from `runTokenDescriptor`. May be called only once, before or after `release`. */
  give(text: string): void;
  /** Returns false when bwrap has ended. */
  readonly isAlive: () => boolean;
  /**
   * Resolves when bwrap and all processes in the sandbox have ended. The result is the exit code of the agent and the end of its output.
   */
  readonly ended: Promise<{ exitCode: number; outputTail: string }>;
  kill(how: 'terminate' | 'kill'): void;
}

export interface BubblewrapStart {
  readonly program: string;
  /** Process name of bwrap. The name shows to which sandbox bwrap belongs, and programs in the sandbox cannot change it. */
  readonly label: string;
  /** Command of the first program in the sandbox. All sandboxes have the same command and differ only in the options of `release`. */
  readonly command: readonly string[];
  /** User of the sandbox; set only if the worker is root. */
  readonly uid?: number;
  readonly cgroup?: Cgroup;
  /** The filter of system calls, which bwrap reads from `filterDescriptor` if its options say so. */
  readonly filter?: Buffer | undefined;
}

/**
 * Starts bwrap with an empty environment. bwrap first waits for its options at descriptor 3, which `release` sends. This has two
 * reasons. First, bwrap can be moved into its cgroup before it makes the sandbox. Second, bwrap can be started before a run is
 * assigned. This saves time, because forking the worker takes milliseconds (`bench/sandbox.md`). If the worker dies before `release`,
 * the pipe closes, and bwrap ends because it has no options. This function must be called on the main thread: because of
 * `--die-with-parent`, bwrap ends when the thread that started it ends.
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
  // Ignores write errors, because they occur only if bwrap ends early, and then the output of bwrap has the reason.
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

/**
 * Sends the signal to init, the child of bwrap. When init ends, the kernel ends all processes in the sandbox's pid namespace, and then
 * bwrap ends.
 */
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
  // Kills bwrap if init has not ended after half a second. With `--die-with-parent`, the kernel then kills init too.
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
 * Returns true if the process is bwrap, init (the first process of the sandbox) or the agent, which init starts. In the pid namespace
 * of the sandbox, init has the pid 1 and the agent has the pid 2. While the agent lives, no other process gets these pids.
 */
export function isOfAgent(pid: number): boolean {
  try {
    // NSpid lists the pid of the process in each namespace, from the namespace of the worker to the innermost one (proc_pid_status(5)). The
    // list has at most two pids, because programs in a sandbox cannot make namespaces.
    const numbers = /^NSpid:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.split(/\s+/) ?? [];
    return numbers.length === 1 || (numbers.length === 2 && Number(numbers[1]) <= 2);
  } catch {
    return false;
  }
}
