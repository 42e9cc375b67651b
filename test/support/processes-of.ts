import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface FoundProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Returns the processes that have the data folder in their environment or arguments, or as working directory. Leaves out zombies. */
export function processesOf(folder: string): FoundProcess[] {
  const found: FoundProcess[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const command = read(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim();
    if (command === '') continue;
    const traces = [command, read(`/proc/${name}/environ`), link(`/proc/${name}/cwd`)];
    if (traces.some((trace) => trace.includes(folder)))
      found.push({ pid: Number(name), parent: parentOf(name), command: command.slice(0, 200) });
  }
  return found;
}

/** The parent is the fourth field of `stat`. The second field, the name of the program, may contain spaces and brackets. */
function parentOf(pid: string): number {
  const stat = read(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function link(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}
