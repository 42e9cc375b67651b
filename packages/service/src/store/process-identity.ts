/** Tells a process from a later one with the same number, and from one in another container. */
import { readFileSync, readlinkSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /** Start of the process in clock ticks since boot. */
  readonly startedAt: string;
  /** Number of the namespace within which the pid means something. */
  readonly pidNamespace: string;
}

/** `elsewhere`: in another container, whose processes cannot be seen from here. */
export type ProcessState = 'alive' | 'gone' | 'elsewhere';

export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, startedAt: startOf(process.pid) ?? '', pidNamespace: ownNamespace() };
}

export function stateOf(identity: ProcessIdentity): ProcessState {
  if (identity.pidNamespace !== ownNamespace()) return 'elsewhere';
  return startOf(identity.pid) === identity.startedAt ? 'alive' : 'gone';
}

/** `pid:[4026531836]` */
function ownNamespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
}

/** Field 22 of /proc/PID/stat, counted after the command's name, which may hold spaces and brackets (proc(5)). */
function startOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
