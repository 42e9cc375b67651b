/**
 * Writes and reads the file in which a worker describes its pool of sandboxes with waiting agents. `runyard doctor` shows the
 * description. This module does not load zod.
 */
import { rmSync } from 'node:fs';
import path from 'node:path';
import { readHolder } from '@runyard/system/claim';
import { isIdentity, type ProcessIdentity, stateOf, thisProcess } from '@runyard/system/process-identity';
import type { PoolCounts } from './sandboxes/pool.ts';
import { writeWhole } from './supervisor-client/files.ts';

/** Milliseconds between two reads of the state of the pool. */
const everyMs = 5000;

interface WaitingFile extends ProcessIdentity {
  readonly since: string;
  readonly pool: PoolCounts;
}

const fileIn = (workerFolder: string): string => path.join(workerFolder, 'waiting.json');

/**
 * Writes the file now, and then every few seconds if the state of the pool has changed. Returns a function that stops this and removes
 * the file.
 */
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
      // If the file cannot be written, for example because the disk is full, the worker continues, because only `runyard doctor` reads
      // the file.
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
      // If the file cannot be removed, it does no harm, because `readWaitingFile` ignores the file of a process that has ended.
      onFault(error as Error);
    }
  };
}

/**
 * Returns the last description that the running worker of this data folder has written. Returns undefined if no worker runs or the worker
 * has no pool.
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
