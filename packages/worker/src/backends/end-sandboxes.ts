import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { lockDataFolder } from '../state/data-folder-lock.ts';
import { chooseStateRoot } from '../state/state-root.ts';
import { sweepLeftovers } from './sweep.ts';

/** Time for a worker that is about to end, also one that leaves its sandboxes, to release the data folder. */
const patienceMs = 10_000;

/**
 * Ends the sandboxes that a dead worker of this data folder left. Otherwise they would run until they stop waiting for the next worker.
 * Returns how many remains it removed; undefined if a worker runs, because the sandboxes are its own.
 */
export async function endSandboxes(dataDir: string): Promise<number | undefined> {
  const deadline = performance.now() + patienceMs;
  let lock = await lockDataFolder(path.resolve(dataDir));
  while ('heldBy' in lock) {
    if (performance.now() > deadline) return undefined;
    await sleep(50);
    lock = await lockDataFolder(path.resolve(dataDir));
  }
  try {
    return await sweepLeftovers(await chooseStateRoot(lock.folder), new Set(), pino({ level: 'silent' }));
  } finally {
    await lock.release();
  }
}
