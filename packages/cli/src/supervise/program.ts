import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { askToStop } from '@runyard/system/parent-input';

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A running child program. */
export interface Program {
  readonly pid: number;
  readonly exited: Promise<ProgramExit>;
  hasExited(): boolean;
  signal(name: NodeJS.Signals): void;
  /** Asks the program to stop with a word on its standard input. Kills the program after `graceMs`. Resolves when the program has ended. */
  stop(graceMs: number): Promise<ProgramExit>;
}

export interface ProgramStart {
  /** Flags of Node, which come before the script. */
  readonly nodeFlags?: readonly string[];
  readonly script: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /**
   * Standard output and standard error of the program are this file. The program itself writes to it, so the log is complete even if this
   * process ends first.
   */
  readonly logFile: string;
}

/**
 * Starts a program with the same Node as this process. The program has a separate session, so that Ctrl-C in the terminal reaches only
 * this process. The standard input of the program is a pipe from this process. When this process ends, even by SIGKILL, the pipe
 * closes and the program ends (`--stop-with-parent`). `stop` writes a word into the pipe before, so that the program can distinguish a
 * stop from a crash of this process.
 * @throws if the process cannot be started
 */
export async function startProgram(start: ProgramStart): Promise<Program> {
  const log = openSync(start.logFile, 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn(process.execPath, [...(start.nodeFlags ?? []), start.script, '--stop-with-parent', ...start.args], {
      env: start.env,
      cwd: start.cwd,
      stdio: ['pipe', log, log],
      detached: true,
    });
  } finally {
    closeSync(log);
  }
  // Ignores write errors, because the program may have already ended.
  child.stdin?.on('error', () => {});
  let hasEnded = false;
  const exited = new Promise<ProgramExit>((resolve) => {
    child.once('exit', (code, signal) => {
      hasEnded = true;
      resolve({ code, signal });
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  return {
    pid: child.pid ?? -1,
    exited,
    hasExited: () => hasEnded,
    signal: (name) => void child.kill(name),
    async stop(graceMs) {
      askToStop(child.stdin);
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      try {
        return await exited;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** Returns `exit code 1` or `signal SIGKILL`. */
export function describeExit(exit: ProgramExit): string {
  return exit.signal ? `signal ${exit.signal}` : `exit code ${exit.code}`;
}
