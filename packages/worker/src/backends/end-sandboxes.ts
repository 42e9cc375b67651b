import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { lockDataFolder } from '../state/data-folder-lock.ts';
import { chooseStateRoot } from '../state/state-root.ts';
import { sweepLeftovers } from './sweep.ts';

/** Time for a worker that is just ending to release the data folder. */
const patienceMs = 3000;

/**
 * Ends the sandboxes that a worker of this data folder left when it died, so that they do not go on until they give up waiting for the
 * next worker. Returns false if a worker runs: it has them.
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
