import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { lockDataFolder } from '../state/data-folder-lock.ts';
import { chooseStateRoot } from '../state/state-root.ts';
import { sweepLeftovers } from './sweep.ts';

/** Time in which a worker that is about to end must release the data folder, even if it leaves its sandboxes. */
const patienceMs = 10_000;

/**
 * Ends the sandboxes that a dead worker of this data folder left. Otherwise they would run until their wait for the next worker ends.
 * Returns the number of removed remains; undefined if a worker runs, because the sandboxes belong to it.
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
