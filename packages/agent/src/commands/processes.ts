import { fs } from '../builtin-modules.ts';

/** Signals a process group; false where it no longer exists. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

/**
 * Kills every process whose environment holds `marker` (`NAME=value`), except this one: what left its process group,
 * by setsid or as a daemon, still carries the environment it was started with. Returns how many were hit.
 */
export function killMarked(marker: string): number {
  let hit = 0;
  for (const name of listProc()) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      if (!fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(marker)) continue;
      process.kill(pid, 'SIGKILL');
      hit++;
    } catch {
      // Gone meanwhile, or another user's: not ours to kill.
    }
  }
  return hit;
}

function listProc(): string[] {
  try {
    return fs.readdirSync('/proc');
  } catch {
    return [];
  }
}
