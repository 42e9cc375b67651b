import { setTimeout as delay } from 'node:timers/promises';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { batchSize, waitForNext } from '../../schedules/claim.ts';
import { type FireDeps, fireDueSchedules } from './fire.ts';

/** A round waits for a time that is closer than this. It is longer than the pause between two rounds. */
const horizonMs = 1_500;

/** Selects a row if a round would fire a schedule or wait for one. */
export const dueSchedules = defineStatement({
  name: 'find_due_schedules',
  text: `SELECT FROM schedules WHERE next_run_at <= now() + interval '${horizonMs} milliseconds' LIMIT 1`,
  row: {},
});

/** If a batch has this many, more may be due. */
const manyDue = batchSize / 4;
/**
 * Shortest pause between two batches, unless many schedules are due. Schedules that become due in the pause fire together, which costs
 * less.
 */
const pauseMs = 50;

/**
 * Fires the schedules that are due, and waits for the next time if it is close, so that schedules fire within milliseconds of their
 * time. Uses only the database's clock, so processes whose clocks differ agree.
 */
export async function runSchedules(deps: FireDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const fired = await fireDueSchedules(deps);
    if (fired >= manyDue) continue;
    const waitMs = await waitForNext(deps.db);
    if (waitMs === null || waitMs > horizonMs) return;
    await delay(Math.max(pauseMs, Math.ceil(waitMs) + 1), undefined, { signal }).catch(() => undefined);
  }
}
