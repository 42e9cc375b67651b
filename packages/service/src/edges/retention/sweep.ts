import { randomUUIDv7 } from 'node:crypto';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Logger } from 'pino';
import type { BlobColumn, DeleteRunDetail, Domain, NightlyTask, RowRule } from '../../platform/domain.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { StoreUnavailable } from '../../platform/store/database/unavailable.ts';
import { reportMissingBlobs, sweepUnreferencedBlobs } from './blobs.ts';
import { claimSweep } from './claim.ts';
import { deleteOldDetail, deleteOldRuns, type Place, type RunBatch, start } from './runs.ts';

/** The work that all domains registered for the nightly sweep, in the order of the domains. */
export interface RegisteredRetention {
  readonly blobs: readonly BlobColumn[];
  readonly rows: readonly RowRule[];
  readonly runDetail: readonly DeleteRunDetail[];
  readonly nightly: readonly NightlyTask[];
}

/** Collects the work that the domains registered. */
export const collectRetention = (domains: readonly Domain[]): RegisteredRetention => ({
  blobs: domains.flatMap(({ blobs = [] }) => blobs),
  rows: domains.flatMap(({ retention }) => retention?.rows ?? []),
  runDetail: domains.flatMap(({ retention }) => retention?.deleteRunDetail ?? []),
  nightly: domains.flatMap(({ retention }) => retention?.nightly ?? []),
});

export interface SweepDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly log: Logger;
  readonly settings: Pick<Settings, 'RUNYARD_RETENTION_RUN_DAYS' | 'RUNYARD_RETENTION_DETAIL_DAYS'>;
  readonly registered: RegisteredRetention;
  /** Aborts when the process ends: the sweep stops between two batches, and another process continues it. */
  readonly signal: AbortSignal;
  /** Returns the time in milliseconds since 1970, from the same clock as the dates of the blobs. */
  readonly now?: () => number;
}

const retryAfterMinutes = 15;

/** Thrown if the process ends, or if another process has taken over the sweep. */
class Stopped extends Error {}

/** `not_due`: the sweep is not due, or another process does it. `stopped`: another process continues the sweep. */
export type SweepOutcome = 'not_due' | 'done' | 'stopped';

/** Does the nightly sweep if it is due and no other process does it. Any number of processes may call it at any time. */
export async function sweepWhenDue(deps: SweepDeps): Promise<SweepOutcome> {
  const { db, blobs, log, settings, signal, registered } = deps;
  if (signal.aborted) return 'stopped';
  const claim = await claimSweep(db, 'retention', randomUUIDv7());
  if (!claim) return 'not_due';
  let isOurs = true;
  const goOn = async () => {
    isOurs = await claim.renew();
    if (signal.aborted || !isOurs) throw new Stopped();
  };

  const failures: unknown[] = [];
  /** Does a part of the sweep. If one part fails, the other parts still run, and the first failure is thrown at the end. */
  const part = async (name: string, work: () => Promise<number>): Promise<number> => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Stopped || error instanceof StoreUnavailable) throw error;
      failures.push(error);
      log.error({ err: error, part: name }, 'a part of the retention sweep failed');
      return 0;
    }
  };

  /** Repeats `work` until no batch is left, and returns the number of rows. */
  const inBatches = async (work: () => Promise<{ rows: number; more: boolean }>) => {
    let total = 0;
    for (let more = true; more; ) {
      await goOn();
      const batch = await work();
      total += batch.rows;
      more = batch.more;
    }
    return total;
  };
  const deleteRows = async () => {
    let total = 0;
    for (const rule of registered.rows) total += await part(rule.table, () => inBatches(() => deleteOldRows(db, rule)));
    return total;
  };
  const deleteRuns = (days: number, hasDetail: boolean) =>
    deleteOfRuns(days, (from) => deleteOldRuns(db, days, from, hasDetail));
  const deleteOfRuns = async (days: number, deleteBatch: (from: Place) => Promise<RunBatch>) => {
    let total = 0;
    // With 0 days, nothing is deleted.
    for (let from = days > 0 ? start : null; from; ) {
      await goOn();
      const batch = await deleteBatch(from);
      total += batch.runs;
      from = batch.next;
      for (const key of batch.blobKeys) await blobs.delete(key);
    }
    return total;
  };
  const doNightlyTasks = async () => {
    const results: Record<string, number> = {};
    for (const { name, run } of registered.nightly) results[name] = await part(name, () => inBatches(() => run(db)));
    return results;
  };

  try {
    const blobSweep = { db, blobs, columns: registered.blobs, log, goOn, now: deps.now ?? Date.now };
    const { RUNYARD_RETENTION_DETAIL_DAYS: detailDays, RUNYARD_RETENTION_RUN_DAYS: runDays } = settings;
    const result = {
      rows: await deleteRows(),
      runs_without_detail: await part('detail of runs', () =>
        deleteOfRuns(detailDays, (from) => deleteOldDetail(db, detailDays, from, registered.runDetail)),
      ),
      runs: await part('runs', async () => (await deleteRuns(runDays, false)) + (await deleteRuns(runDays, true))),
      ...(await doNightlyTasks()),
      blobs: await part('blobs', () => sweepUnreferencedBlobs(blobSweep)),
      missing_blobs: await part('missing blobs', () => reportMissingBlobs(blobSweep)),
    };
    if (failures.length > 0) throw failures[0];
    await claim.finish(result);
    log.info({ deleted: result }, 'retention swept');
    return 'done';
  } catch (error) {
    if (isOurs) await claim.release(error instanceof Stopped ? 0 : retryAfterMinutes).catch(() => undefined);
    if (error instanceof Stopped) return 'stopped';
    throw error;
  }
}

const batchSize = 5000;

/** Deletes a batch of the rows of a rule; `more` is true if further rows may be left. */
export async function deleteOldRows(
  db: Queryable,
  { table, isOver }: RowRule,
): Promise<{ rows: number; more: boolean }> {
  const deleted = await db.query(
    `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} WHERE ${isOver} LIMIT ${batchSize})) AND ${isOver} RETURNING 1 AS one`,
  );
  return { rows: deleted.length, more: deleted.length === batchSize };
}
