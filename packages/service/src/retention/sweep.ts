import { randomUUIDv7 } from 'node:crypto';
import type { Settings } from '@runyard/contract/settings';
import type { Logger } from 'pino';
import type { BlobStore } from '../store/blobs/blobs.ts';
import type { Database } from '../store/database/database.ts';
import { reportMissingBlobs, sweepUnreferencedBlobs } from './blobs.ts';
import { claimSweep } from './claim.ts';
import { mergeOldEvents } from './merge-events.ts';
import { deleteOldRows, rowPolicies } from './rows.ts';
import { deleteOldDetail, deleteOldRuns, start } from './runs.ts';
import { markEventStreams } from './stream-marks.ts';

export interface SweepDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly log: Logger;
  readonly settings: Pick<Settings, 'RUNYARD_RETENTION_RUN_DAYS' | 'RUNYARD_RETENTION_DETAIL_DAYS'>;
  /** Aborted as the process ends: the sweep stops between two batches, and another process goes on with it. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970, by the clock that dates the blobs. */
  readonly now?: () => number;
}

const retryAfterMinutes = 15;

/** The sweep was stopped in good order. */
class Stopped extends Error {}

/** `not_due`: nothing to do, or another process does it. `stopped`: what is left is done by whoever comes next. */
export type SweepOutcome = 'not_due' | 'done' | 'stopped';

/** The nightly sweep, where it is due and nobody else is at it. Any number of processes may call it at any time. */
export async function sweepWhenDue(deps: SweepDeps): Promise<SweepOutcome> {
  const { db, blobs, log, settings, signal } = deps;
  if (signal.aborted) return 'stopped';
  const claim = await claimSweep(db, 'retention', randomUUIDv7());
  if (!claim) return 'not_due';
  let isOurs = true;
  const goOn = async () => {
    isOurs = await claim.renew();
    if (signal.aborted || !isOurs) throw new Stopped();
  };

  const deleteRows = async () => {
    let total = 0;
    for (const policy of rowPolicies) {
      for (let more = true; more; ) {
        await goOn();
        const batch = await deleteOldRows(db, policy);
        total += batch.rows;
        more = batch.more;
      }
    }
    return total;
  };
  const deleteOfRuns = async (days: number, deleteBatch: typeof deleteOldRuns) => {
    let total = 0;
    // 0 days: kept for ever.
    for (let from = days > 0 ? start : null; from; ) {
      await goOn();
      const batch = await deleteBatch(db, days, from);
      total += batch.runs;
      from = batch.next;
      for (const key of batch.blobKeys) await blobs.delete(key);
    }
    return total;
  };

  const mergeEvents = async () => {
    let total = 0;
    for (let more = true; more; ) {
      await goOn();
      const batch = await mergeOldEvents(db);
      total += batch.rows;
      more = batch.more;
    }
    return total;
  };

  try {
    const context = { db, blobs, log, goOn, now: deps.now ?? Date.now };
    const result = {
      rows: await deleteRows(),
      runs_without_detail: await deleteOfRuns(settings.RUNYARD_RETENTION_DETAIL_DAYS, deleteOldDetail),
      runs: await deleteOfRuns(settings.RUNYARD_RETENTION_RUN_DAYS, deleteOldRuns),
      merged_events: await mergeEvents(),
      blobs: await sweepUnreferencedBlobs(context),
      missing_blobs: await reportMissingBlobs(context),
    };
    await markEventStreams(db);
    await claim.finish(result);
    log.info({ deleted: result }, 'retention swept');
    return 'done';
  } catch (error) {
    if (isOurs) await claim.release(error instanceof Stopped ? 0 : retryAfterMinutes).catch(() => undefined);
    if (error instanceof Stopped) return 'stopped';
    throw error;
  }
}
