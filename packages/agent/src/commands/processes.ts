import { fs } from '../builtin-modules.ts';

const listeners = new Set<() => void>();

/** Calls the listener before each signal to a process group. Returns a function that removes the listener. */
export function beforeSignals(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Sends a signal to a process group. Returns false if the group does not exist. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  for (const listener of listeners) listener();
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

/**
 * Lists every process with `marker` (`NAME=value`) in its environment, except this process. So the list also contains a daemon that
 * has left its process group, because a process keeps the environment with which it started.
 */
export function listMarked(marker: string): number[] {
  return listProc().flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    try {
      return fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(marker) ? [pid] : [];
    } catch {
      // The process has exited, or it belongs to another user.
      return [];
    }
  });
}

/** Returns true if another process has `marker` (`NAME=value`) in its environment. */
export const isAnyMarked = (marker: string): boolean => listMarked(marker).length > 0;

/**
 * Lists every process that this process can see, except itself and the process with the id 1. In a sandbox, the listed processes are those
 * of the run.
 */
export const listVisible = (): number[] =>
  listProc()
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid && pid !== 1);

/**
 * Lists these processes and all their descendants. Finds them by their parents and not by a variable, because a program can
 * overwrite its environment. PostgreSQL does this to show the state of its processes.
 */
export function listDescendants(pids: readonly number[]): number[] {
  if (pids.length === 0) return [];
  const children = new Map<number, number[]>();
  for (const name of listProc()) {
    const parent = parentOf(name);
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found = new Set(pids);
  for (const pid of found) for (const child of children.get(pid) ?? []) found.add(child);
  return [...found];
}

/**
 * Returns false if a process has ended. Its parent may not have waited for it yet, so it can still be listed. Reads its state and not its
 * arguments, because a process has no arguments for a moment while it starts a program.
 */
export const isRunning = (pid: number): boolean => !['Z', 'X', undefined].includes(statOf(String(pid))?.state);

/** Returns the parent of a process. */
const parentOf = (name: string): number | undefined => (/^\d+$/.test(name) ? statOf(name)?.parent : undefined);

/** Reads the state of a process (proc_pid_stat(5)). The name of the program, in parentheses, may contain spaces and parentheses. */
function statOf(pid: string): { state: string | undefined; parent: number } | undefined {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/** Kills every process that `listMarked` lists. Returns the number of killed processes. */
export const killMarked = (marker: string): number => killProcesses(listMarked(marker));

/** Kills processes, except those of `spared`. Returns the number of killed processes. */
export function killProcesses(pids: readonly number[], spared: ReadonlySet<number> = new Set()): number {
  let killed = 0;
  for (const pid of pids) {
    if (spared.has(pid)) continue;
    try {
      process.kill(pid, 'SIGKILL');
      killed++;
    } catch {
      // The process has exited meanwhile.
    }
  }
  return killed;
}

function listProc(): string[] {
  try {
    return fs.readdirSync('/proc');
  } catch {
    return [];
  }
}
