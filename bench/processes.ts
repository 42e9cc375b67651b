/** Finds the processes of a data folder by their working folders. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { memoryOf } from './report.ts';

/**
 * Returns the ids of the processes whose working folder is below `folder` and whose command line contains `named`. In a data folder,
 * these are the processes of PostgreSQL and its guard.
 */
export function processesBelow(folder: string, named = ''): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const isOurs = readlinkSync(`/proc/${name}/cwd`).startsWith(`${folder}/`);
      return isOurs && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(named) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

/** Returns the total memory of these processes in MB (PSS: shared pages are counted in part). */
export const pssBelow = (folder: string): number =>
  processesBelow(folder).reduce((sum, pid) => sum + memoryOf(pid).pssMb, 0);

const clockTicks = 100;

const ticksOf = (pid: number, first: number, last: number): number =>
  (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [])
    .slice(first, last + 1)
    .reduce((sum, ticks) => sum + Number(ticks), 0);

/** Returns the seconds of processor time that the process has used, without its children. */
export const cpuSecondsOf = (pid: number): number => ticksOf(pid, 11, 12) / clockTicks;

/**
 * Returns the seconds of processor time of the process, including its ended children. Returns 0 if the process has just ended, because
 * its time then belongs to its parent.
 */
export function cpuSecondsWithEnded(pid: number): number {
  try {
    return ticksOf(pid, 11, 14) / clockTicks;
  } catch {
    return 0;
  }
}
