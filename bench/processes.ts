/** Processes of a data folder, found by where they work. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { memoryOf } from './report.ts';

/** Ids of those that work in a folder below `folder`, with `named` in their command line: PostgreSQL's, and its guard. */
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

/** Their memory together, MB: shared pages counted in part. */
export const pssBelow = (folder: string): number =>
  processesBelow(folder).reduce((sum, pid) => sum + memoryOf(pid).pssMb, 0);

const clockTicks = 100;

/** Seconds of processor time that the process has taken. */
export function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / clockTicks;
}
