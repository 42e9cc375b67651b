import { readFileSync, readlinkSync } from 'node:fs';

/** A process that cannot be confused with a later one of the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to its start (field 22 of proc_pid_stat(5)); `null` where there is no /proc. */
  readonly start_ticks: number | null;
  /** Within which the pid means something, such as `pid:[4026531836]`; absent in files of older versions. */
  readonly pid_namespace?: string | undefined;
}

/** Process namespace of this process, `undefined` where there is no /proc. */
function ownNamespace(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return undefined;
  }
}

/** True where the process is in another container: whether it lives cannot be seen from here. */
export function isElsewhere({ pid_namespace }: ProcessIdentity): boolean {
  return pid_namespace !== undefined && pid_namespace !== ownNamespace();
}

/** Start of the process in clock ticks since boot, `null` where that is not known. */
function startTicks(pid: number): number | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null;
  }
  // The second field is the command in brackets, which may hold spaces and brackets itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[19]);
  return Number.isFinite(ticks) ? ticks : null;
}

export function identify(pid: number): ProcessIdentity {
  return { pid, start_ticks: startTicks(pid), pid_namespace: ownNamespace() };
}

/** True while that very process lives here; a zombie, which only waits to be reaped, does not. */
export function isAlive(process_: ProcessIdentity): boolean {
  if (isElsewhere(process_)) return false;
  try {
    process.kill(process_.pid, 0);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false;
  }
  if (process_.start_ticks === null) return true;
  try {
    const stat = readFileSync(`/proc/${process_.pid}/stat`, 'utf8');
    if (stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) === 'Z') return false;
  } catch {
    return false;
  }
  return startTicks(process_.pid) === process_.start_ticks;
}
