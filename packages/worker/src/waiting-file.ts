/** The file in which a worker describes its pool of waiting sandboxes, for `runyard doctor`. Loads no zod. */
import { rmSync } from 'node:fs';
import path from 'node:path';
import { readHolder } from '@runyard/system/claim';
import { isIdentity, type ProcessIdentity, stateOf, thisProcess } from '@runyard/system/process-identity';
import type { PoolCounts } from './sandboxes/pool.ts';
import { writeWhole } from './supervisor-client/files.ts';

/** Pause between two reads of the pool. */
const everyMs = 5000;

interface WaitingFile extends ProcessIdentity {
  readonly since: string;
  readonly pool: PoolCounts;
}

const fileIn = (workerFolder: string): string => path.join(workerFolder, 'waiting.json');

/** Writes the file now and, while the pool changes, every few seconds. Returns a function that stops this and removes the file. */
export function keepWaitingFile(workerFolder: string, read: () => PoolCounts, onFault: (error: Error) => void) {
  const file = fileIn(workerFolder);
  const about = { ...thisProcess(), since: new Date().toISOString() };
  let written = '';
  const write = (): void => {
    const pool = read();
    const text = JSON.stringify(pool);
    if (text === written) return;
    written = text;
    try {
      writeWhole(file, { ...about, pool });
    } catch (error) {
      // For example, the disk is full. The worker continues, because only `runyard doctor` reads the file.
      onFault(error as Error);
    }
  };
  write();
  const timer = setInterval(write, everyMs).unref();
  return (): void => {
    clearInterval(timer);
    try {
      rmSync(file, { force: true });
    } catch (error) {
      // Readers ignore the file of a process that has ended.
      onFault(error as Error);
    }
  };
}

/**
 * Returns the latest description that the running worker of this data folder wrote. Undefined: no worker runs, or the worker has no pool.
 */
export function readWaitingFile(dataDir: string): WaitingFile | undefined {
  const found = readHolder(fileIn(path.join(dataDir, 'worker')), isWaitingFile);
  return found !== undefined && stateOf(found) === 'alive' ? found : undefined;
}

function isWaitingFile(value: unknown): value is WaitingFile {
  if (!isIdentity(value) || !('since' in value) || typeof value.since !== 'string' || !('pool' in value)) return false;
  const pool = value.pool as Record<string, unknown> | null;
  if (typeof pool !== 'object' || pool === null) return false;
  const hasCounts = ['wanted', 'ready', 'taken', 'failed'].every((name) => Number.isInteger(pool[name]));
  return hasCounts && ['undefined', 'string'].includes(typeof pool.failure);
}
