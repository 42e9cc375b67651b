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

/** Kills what `find` finds until it finds nothing. Returns what is left after `limitMs`: processes the kernel does not let go of. */
export async function killUntilGone(find: () => Promise<number[]>, limitMs = 3000): Promise<number[]> {
  const deadline = performance.now() + limitMs;
  let left = await find();
  while (left.length > 0 && performance.now() < deadline) {
    killProcesses(left);
    await sleep(10);
    left = await find();
  }
  return left;
}
