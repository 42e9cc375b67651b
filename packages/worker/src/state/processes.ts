import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTicks } from '@runyard/system/process-identity';

/** Returns the pids of all processes that this process can see. */
async function listProcesses(): Promise<number[]> {
  const names = await readdir('/proc');
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

/**
 * Returns the processes whose argument list (`cmdline`) or environment (`environ`) has an entry that begins with `prefix` and for
 * which `counts` returns true. Never returns zombies, because they have no arguments and no environment.
 */
export async function findProcesses(
  where: 'cmdline' | 'environ',
  prefix: string,
  counts: (entry: string) => boolean = () => true,
): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await listProcesses()) {
    if (pid === process.pid) continue;
    const text = await readFile(`/proc/${pid}/${where}`, 'latin1').catch(() => '');
    if (!text.includes(prefix)) continue;
    if (text.split('\0').some((entry) => entry.startsWith(prefix) && counts(entry))) found.push(pid);
  }
  return found;
}

/** Sends SIGKILL to each process. Ignores processes that have already ended. */
export function killProcesses(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Ignores the error: the process has ended or belongs to another user. If it still runs, the next search of the caller finds it
      // again.
    }
  }
}

/** Time between two reports about processes that have not ended yet. */
const slowMs = 3000;

/** Longest pause between two searches. The pauses grow, because each search reads all processes of the machine. */
const longestPauseMs = 200;

/**
 * Returns a function that passes pids to `report`. It does this for the first time after `slowMs`, and then at most once in each period of
 * `slowMs`.
 */
export function slowDeaths(report: (pids: readonly number[]) => void): (pids: readonly number[]) => void {
  let due = performance.now() + slowMs;
  return (pids) => {
    if (performance.now() < due) return;
    due = performance.now() + slowMs;
    report(pids);
  };
}

/**
 * Repeatedly kills the processes that `find` returns, until none is left. There is no time limit, because a killed process that waits for a
 * disk or a processor ends late. Also waits until the kernel has ended each process that `find` has returned at least once. Reason: `find`
 * may not find a dying process again. For example, the first process of a pid namespace loses its arguments while other processes of the
 * namespace still run. Calls `onSlow` every few seconds with the remaining processes.
 */
export async function killUntilGone(
  find: () => Promise<number[]>,
  onSlow: (pids: readonly number[]) => void,
): Promise<void> {
  const report = slowDeaths(onSlow);
  const startedAt = performance.now();
  const seen = new Map<number, number>();
  for (;;) {
    const found = await find();
    for (const pid of found) {
      const ticks = startTicks(pid);
      if (ticks !== undefined) seen.set(pid, ticks);
    }
    for (const [pid, ticks] of seen) if (startTicks(pid) !== ticks) seen.delete(pid);
    if (found.length === 0 && seen.size === 0) return;
    killProcesses([...seen.keys()]);
    report([...seen.keys()]);
    await sleep(Math.min(Math.max((performance.now() - startedAt) / 5, 10), longestPauseMs));
  }
}
