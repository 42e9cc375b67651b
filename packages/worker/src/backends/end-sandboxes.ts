import { pino } from 'pino';
import { waitForDataFolder } from '../state/data-folder-lock.ts';
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
  const lock = await waitForDataFolder(dataDir, patienceMs);
  if ('heldBy' in lock) return undefined;
  try {
    return await sweepLeftovers(await chooseStateRoot(lock.folder), new Set(), pino({ level: 'silent' }));
  } finally {
    await lock.release();
  }
}
