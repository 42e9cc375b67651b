import { setTimeout as delay } from 'node:timers/promises';
import { waitForNext } from './claim.ts';
import { fireDueSchedules, type ScheduleDeps } from './fire.ts';

/** A round waits for a time that is nearer than this, which is longer than the pause between two rounds. */
const horizonMs = 1_500;
/** Pause while other processes have locked what is due. */
const contendedMs = 20;

/**
 * Fires what is due, and waits for the next time if it is near, so that schedules fire within milliseconds of their time. Only the
 * database's clock counts: processes whose clocks differ agree.
 */
export async function runSchedules(deps: ScheduleDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const fired = await fireDueSchedules(deps);
    if (fired > 0) continue;
    const waitMs = await waitForNext(deps.db);
    if (waitMs === null || waitMs > horizonMs) return;
    await delay(waitMs > 0 ? Math.ceil(waitMs) + 1 : contendedMs, undefined, { signal }).catch(() => undefined);
  }
}
