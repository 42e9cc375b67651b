/** Finds processes, sandboxes and mounts that still exist after an installation has stopped, and blobs without rows. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pino } from 'pino';
import { graceMs, sweepUnreferencedBlobs } from '../../packages/service/src/edges/retention/blobs.ts';
import type { BlobStore } from '../../packages/service/src/platform/store/blobs/blobs.ts';
import { markerKey } from '../../packages/service/src/platform/store/blobs/marker.ts';
import type { Database } from '../../packages/service/src/platform/store/database/database.ts';
import { executionBlobs } from '../../packages/service/src/runs/executions/retention.ts';
import { fileBlobs } from '../../packages/service/src/runs/files/retention.ts';
import { skillBlobs } from '../../packages/service/src/team/skills/of-run.ts';
import type { Installation } from './installation.ts';

/**
 * Returns all processes of this process namespace except process 1, this process and its parent. The caller must be in a process
 * namespace of its own.
 */
export function leftProcesses(): string[] {
  const own = new Set([1, process.pid, process.ppid].map(String));
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || own.has(name)) return [];
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      return words === '' ? [] : [`process ${name}: ${words.slice(0, 200)}`];
    } catch {
      return [];
    }
  });
}

/** Returns a line for each folder and disk of a sandbox, each mount in the folder of a node, and each network namespace without a node. */
export function leftSandboxes({ programs }: Installation): string[] {
  const nodes = programs.map(({ node }) => node);
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  const folders = nodes.flatMap(({ folder }) => {
    const sandboxes = path.join(folder, 'worker/state/s');
    return existsSync(sandboxes) ? readdirSync(sandboxes).map((name) => `sandbox ${path.join(sandboxes, name)}`) : [];
  });
  const disks = readdirSync('/sys/block').flatMap((name) => {
    const file = `/sys/block/${name}/loop/backing_file`;
    const of = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    return nodes.some(({ folder }) => of.startsWith(`${folder}/`)) ? [`disk ${of}`] : [];
  });
  const inside = mounts.filter((place) => nodes.some(({ folder }) => place.startsWith(`${folder}/`)));
  const names = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '');
  const others = names.filter((name) => name !== '' && !nodes.some((node) => node.name === name));
  return [
    ...folders,
    ...disks,
    ...inside.map((place) => `mount ${place}`),
    ...others.map((name) => `namespace ${name}`),
  ];
}

export interface BlobCounts {
  readonly blobs: number;
  /** Number of blobs without a row that the nightly sweep removed. A killed process leaves such blobs. */
  readonly swept: number;
  readonly faults: readonly string[];
}

/**
 * Runs the nightly sweep of blobs with a clock that is far enough ahead to remove all blobs without a row. Then returns a fault for
 * each remaining blob without a row and for each row whose blob is missing.
 */
export async function sweepBlobs(db: Database, blobs: BlobStore): Promise<BlobCounts> {
  const columns = [skillBlobs, ...fileBlobs, ...executionBlobs];
  const goOn = async () => undefined;
  const now = () => Date.now() + graceMs + 3_600_000;
  const swept = await sweepUnreferencedBlobs({ db, blobs, columns, log: pino({ level: 'silent' }), now, goOn });
  const named = columns.map(({ table, column }) => `SELECT ${column} AS key FROM ${table} WHERE ${column} IS NOT NULL`);
  const missing = new Set((await db.query<{ key: string }>(named.join(' UNION '))).map(({ key }) => key));
  const faults: string[] = [];
  let count = 0;
  for await (const { key } of blobs.list()) {
    count += 1;
    if (!missing.delete(key) && key !== markerKey) faults.push(`a blob without a row: ${key}`);
  }
  for (const key of missing) faults.push(`a row without its blob: ${key}`);
  return { blobs: count, swept, faults };
}
