import { spawn } from 'node:child_process';
import { readProcessorTime } from '../support/processor-time.ts';

export interface Finished {
  readonly code: number;
  readonly timedOut: boolean;
  readonly durationMs: number;
  /** Processor time, user and system, of the command and of the processes that it started and waited for. */
  readonly cpuMs: number;
}

/** Running process groups, which end with this process. */
const groups = new Set<number>();

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    for (const group of groups) endGroup(group, 'SIGTERM');
    // Kills a process that ignores the signal. The exit code shows that a signal ended this process.
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

/** Runs a command with our output and no input, in a group of its own; kills the group after `limitMs`. */
export async function runCommand(
  command: readonly [string, ...string[]],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv; readonly limitMs: number },
): Promise<Finished> {
  const startedAt = performance.now();
  const cpuBefore = readProcessorTime().childrenMs;
  const [program, ...args] = command;
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['ignore', 'inherit', 'inherit'],
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
  clearTimeout(timer);
  if (group !== undefined) {
    // Ends processes that a test left in its group.
    endGroup(group, 'SIGKILL');
    groups.delete(group);
  }
  const cpuMs = readProcessorTime().childrenMs - cpuBefore;
  return { code, timedOut, durationMs: performance.now() - startedAt, cpuMs };
}
