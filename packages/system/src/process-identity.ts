/**
 * Distinguishes a process from a later process with the same id, and from a process in another container. This module does not load zod.
 */
import { readFileSync, readlinkSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /** Time at which the process started, in clock ticks since boot. */
  readonly start_ticks: number;
  /** Number of the pid namespace in which the pid is valid. */
  readonly pid_namespace: string;
}

/** Returns whether a value, such as parsed JSON, is the identity of a process. */
export function isIdentity(value: unknown): value is ProcessIdentity {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, start_ticks, pid_namespace }: Partial<Record<keyof ProcessIdentity, unknown>> = value;
  return (
    Number.isSafeInteger(pid) && Number(pid) > 0 && Number.isFinite(start_ticks) && typeof pid_namespace === 'string'
  );
}

/** `elsewhere`: the process belongs to another container, whose processes are invisible here. */
export type ProcessState = 'alive' | 'gone' | 'elsewhere';

export const thisProcess = (): ProcessIdentity => identityOf(process.pid);

export const parentProcess = (): ProcessIdentity => identityOf(process.ppid);

const identityOf = (pid: number): ProcessIdentity => ({
  pid,
  start_ticks: startTicks(pid) ?? 0,
  pid_namespace: ownNamespace(),
});

/** Returns whether exactly this process still exists. A zombie, which only waits to be reaped, counts as gone. */
export function stateOf(identity: ProcessIdentity): ProcessState {
  if (identity.pid_namespace !== ownNamespace()) return 'elsewhere';
  return startTicks(identity.pid) === identity.start_ticks ? 'alive' : 'gone';
}

/** Returns when the process started, in clock ticks since boot; undefined if it does not exist or is a zombie. */
export function startTicks(pid: number): number | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // proc_pid_stat(5): field 2 is the command in parentheses and may contain anything; field 3 is the state, field 22 the start.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? undefined : Number(fields[19]);
}

/**
 * Returns the number of the pid namespace of this process, such as 4026531836 from the link `pid:[4026531836]`. Returns an empty text if
 * /proc is missing.
 */
function ownNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
  } catch {
    return '';
  }
}
