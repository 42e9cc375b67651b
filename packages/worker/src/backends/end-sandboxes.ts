import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { lockDataFolder } from '../state/data-folder-lock.ts';
import { chooseStateRoot } from '../state/state-root.ts';
import { sweepLeftovers } from './sweep.ts';

/** If a worker that is just ending still holds the data folder, wait this long for its lock. */
const patienceMs = 10_000;

/**
 * Ends the sandboxes that still run although the worker of this data folder has ended. Otherwise these sandboxes would wait for the next
 * worker for some time before they end. Returns how many sandboxes and other leftovers were removed. If a worker of the folder runs,
 * changes nothing and returns undefined, because the sandboxes belong to that worker.
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
