/** Functions that all benchmarks share: percentiles, the description of the machine, and the page with the result. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** Returns the value below which `share` (0 to 1) of the sample lies, by the nearest-rank method. */
export function percentile(sample: readonly number[], share: number): number {
  const sorted = [...sample].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

/** Returns the median of the sample. */
export const median = (sample: readonly number[]): number => percentile(sample, 0.5);

function machine(): string {
  const cpu = os.cpus()[0]?.model ?? 'unknown';
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: import.meta.dirname })
    .toString()
    .trim();
  const load = os.loadavg()[0]?.toFixed(2);
  return `${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${os.cpus().length} cores (${cpu}), ${Math.round(os.totalmem() / 2 ** 30)} GiB, Linux ${os.release()}, Node ${process.versions.node}, load ${load} at the end`;
}

/** Prints the table and, with `--write`, stores it beside the script as `<script>.md`. */
export function report(
  title: string,
  notes: string,
  columns: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): void {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
  const table = [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
  const script = path.basename(process.argv[1] ?? '');
  const text = `# ${title}\n\n${notes}\n\n${table}\n\n${machine()}. Reproduce: \`node bench/${script} --write\`. The machine is shared: compare numbers only within a table.\n`;
  process.stdout.write(`${text}\n`);
  if (process.argv.includes('--write'))
    writeFileSync(path.join(import.meta.dirname, script.replace(/\.ts$/, '.md')), text);
}

/**
 * Returns the resident and the proportional memory of a process in MB. Proportional memory counts a page that n processes share as 1/n
 * page. `sharedMb`: the part of the proportional memory that is shared memory, such as the cache of PostgreSQL.
 */
export function memoryOf(pid: number): { rssMb: number; pssMb: number; sharedMb: number } {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(rollup)?.[1] ?? Number.NaN);
  const mb = (name: string) => Math.round(kb(name) / 1024);
  return { rssMb: mb('Rss'), pssMb: mb('Pss'), sharedMb: kb('Pss_Shmem') / 1024 };
}
