import { setTimeout as delay } from 'node:timers/promises';
import { batchSize, waitForNext } from './claim.ts';
import { fireDueSchedules, type ScheduleDeps } from './fire.ts';

/** A round waits for a time that is nearer than this, which is longer than the pause between two rounds. */
const horizonMs = 1_500;
/** So many in one batch mean that more may be due. */
const manyDue = batchSize / 4;
/** Shortest pause between two batches, unless much is due. What becomes due meanwhile fires together, which is cheaper. */
const pauseMs = 50;

/**
 * Fires what is due, and waits for the next time if it is near, so that schedules fire within milliseconds of their time. Only the
 * database's clock counts: processes whose clocks differ agree.
 */
export async function runSchedules(deps: ScheduleDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const fired = await fireDueSchedules(deps);
    if (fired >= manyDue) continue;
    const waitMs = await waitForNext(deps.db);
    if (waitMs === null || waitMs > horizonMs) return;
    await delay(Math.max(pauseMs, Math.ceil(waitMs) + 1), undefined, { signal }).catch(() => undefined);
  }
}
