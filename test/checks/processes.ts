import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readProcessorTime } from '../support/processor-time.ts';

export interface Finished {
  readonly code: number;
  readonly timedOut: boolean;
  readonly durationMs: number;
  /** User and system processor time of the command and of the processes that it started and waited for. */
  readonly cpuMs: number;
}

/** Ids of the running process groups. When a signal ends this process, this process first ends the groups. */
const groups = new Set<number>();

/**
 * Processor time of all child processes that had ended when the last command ended. The system adds the time of a child process when
 * it ends. So the processor time after the current command, minus this value, is the time of the current command.
 */
let countedMs = 0;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    for (const group of groups) endGroup(group, 'SIGTERM');
    // Kill groups that ignore the first signal. The exit code shows that a signal ended this process.
    setTimeout(() => {
      for (const group of groups) endGroup(group, 'SIGKILL');
      process.exit(130);
    }, 3000);
  });
}

function endGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    // The group is gone.
  }
}

export interface CommandOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limitMs: number;
  /** File for the output. Default: the output of this process. */
  readonly outputFile?: string | undefined;
}

/** Runs a command without input in its own process group. Kills this group after `limitMs`. */
export async function runCommand(command: readonly [string, ...string[]], options: CommandOptions): Promise<Finished> {
  const startedAt = performance.now();
  if (groups.size === 0) countedMs = readProcessorTime().childrenMs;
  const [program, ...args] = command;
  const output = options.outputFile === undefined ? undefined : openSync(options.outputFile, 'w');
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['ignore', output ?? 'inherit', output ?? 'inherit'],
    detached: true,
  });
  const group = child.pid;
  if (group !== undefined) groups.add(group);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    if (group !== undefined) endGroup(group, 'SIGKILL');
  }, options.limitMs);
  const code = await new Promise<number>((resolve) => {
    child.once('error', (error) => {
      console.error(error.message);
      resolve(127);
    });
    child.once('exit', (exitCode) => resolve(exitCode ?? 128));
  });
  const { childrenMs } = readProcessorTime();
  const cpuMs = childrenMs - countedMs;
  countedMs = childrenMs;
  clearTimeout(timer);
  if (group !== undefined) {
    // Kill the processes that the command has left in its group.
    endGroup(group, 'SIGKILL');
    groups.delete(group);
  }
  if (output !== undefined) closeSync(output);
  return { code, timedOut, durationMs: performance.now() - startedAt, cpuMs };
}
