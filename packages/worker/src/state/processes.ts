import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Start time of a process in clock ticks since boot (field 22 of /proc/pid/stat): with the pid it names one process. `undefined`: it does not exist. */
export async function processStartTime(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The second field is the command in parentheses and may contain anything, so fields are counted from the last one.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ');
  // A zombie holds nothing any more; where nobody reaps, it stays for ever.
  return fields?.[0] === 'Z' ? undefined : fields?.[19];
}

/** Pids of all processes that this one can see. */
async function listProcesses(): Promise<number[]> {
  const names = await readdir('/proc');
  return names.filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Pids whose argument list (`cmdline`) or environment (`environ`) has an entry that begins with `prefix`. Zombies have neither. */
export async function findProcesses(where: 'cmdline' | 'environ', prefix: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await listProcesses()) {
    if (pid === process.pid) continue;
    const text = await readFile(`/proc/${pid}/${where}`, 'latin1').catch(() => '');
    if (text.startsWith(prefix) || text.includes(`\0${prefix}`)) found.push(pid);
  }
  return found;
}

/** SIGKILL to each; one that is gone already is fine. */
export function killProcesses(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone, or not ours: whoever calls looks again.
    }
  }
}

/** How long processes may take to die before somebody is told, and after that how often. */
const slowMs = 3000;

/** Calls `report` with `pids` each time another few seconds have passed since it was made. */
export function slowDeaths(report: (pids: readonly number[]) => void): (pids: readonly number[]) => void {
  let due = performance.now() + slowMs;
  return (pids) => {
    if (performance.now() < due) return;
    due = performance.now() + slowMs;
    report(pids);
  };
}

/**
 * Kills what `find` finds until nothing is left, however long that takes: a process that waits for a disk, or for the processor,
 * obeys late. A process that was found once counts until the kernel has ended it, although it loses the marks by which it was
 * found before that: the first process of a pid namespace has no arguments any more while the others of the namespace still run.
 * `onSlow` hears every few seconds what is left.
 */
export async function killUntilGone(
  find: () => Promise<number[]>,
  onSlow: (pids: readonly number[]) => void,
): Promise<void> {
  const report = slowDeaths(onSlow);
  const seen = new Map<number, string>();
  for (;;) {
    const found = await find();
    for (const pid of found) {
      const startTime = await processStartTime(pid);
      if (startTime !== undefined) seen.set(pid, startTime);
    }
    for (const [pid, startTime] of seen) if ((await processStartTime(pid)) !== startTime) seen.delete(pid);
    if (found.length === 0 && seen.size === 0) return;
    killProcesses([...seen.keys()]);
    report([...seen.keys()]);
    await sleep(10);
  }
}
