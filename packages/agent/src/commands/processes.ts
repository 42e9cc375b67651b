import { fs } from '../builtin-modules.ts';

/** Sends a signal to a process group. Returns false if the group does not exist. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

/**
 * Kills every process whose environment has `marker` (`NAME=value`), except this one. A process that left its group as a daemon still
 * has the environment with which it was started. Returns the number of killed processes.
 */
export function killMarked(marker: string): number {
  let killed = 0;
  for (const pid of findMarked(marker)) {
    try {
      process.kill(pid, 'SIGKILL');
      killed++;
    } catch {
      // The process has exited.
    }
  }
  return killed;
}

/** Returns true if a process other than this one has `marker` (`NAME=value`) in its environment. */
export const isAnyMarked = (marker: string): boolean => findMarked(marker).next().done !== true;

function* findMarked(marker: string): Generator<number> {
  for (const name of listProc()) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      if (!fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(marker)) continue;
    } catch {
      // The process has exited, or it belongs to another user.
      continue;
    }
    yield pid;
  }
}

function listProc(): string[] {
  try {
    return fs.readdirSync('/proc');
  } catch {
    return [];
  }
}
