import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { lockDataFolder } from '../state/data-folder-lock.ts';
import { chooseStateRoot } from '../state/state-root.ts';
import { sweepLeftovers } from './sweep.ts';

/** Time for a worker that is about to end to release the data folder. */
const patienceMs = 3000;

/**
 * Ends the sandboxes that a dead worker of this data folder left. Otherwise they would run until they stop waiting for the next worker.
 * Returns false if a worker runs, because the sandboxes are its own.
 */
export async function endSandboxes(dataDir: string): Promise<boolean> {
  const deadline = performance.now() + patienceMs;
  let lock = await lockDataFolder(path.resolve(dataDir));
  while ('heldBy' in lock) {
    if (performance.now() > deadline) return false;
    await sleep(50);
    lock = await lockDataFolder(path.resolve(dataDir));
  }
  try {
    await sweepLeftovers(await chooseStateRoot(lock.folder), new Set(), pino({ level: 'silent' }));
    return true;
  } finally {
    await lock.release();
  }
}
