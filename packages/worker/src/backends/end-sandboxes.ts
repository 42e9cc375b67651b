import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { lockDataFolder } from '../state/data-folder-lock.ts';
import { chooseStateRoot } from '../state/state-root.ts';
import { sweepLeftovers } from './sweep.ts';

/** Time to wait for an ending worker to release the data folder. A worker that leaves its sandboxes running also releases it in this time. */
const patienceMs = 10_000;

/**
 * Ends the sandboxes that a dead worker of this data folder left. Without this, the sandboxes would run until they stop waiting for the
 * next worker. Returns how many leftovers were removed; undefined if a worker of the folder runs, because the sandboxes belong to that
 * worker.
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
