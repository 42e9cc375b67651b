/**
 * Counts the runs of a schedule or an automation that failed in a row. Notifies whom the rules name, and pauses a schedule or disables an
 * automation whose runs always fail.
 */
import type { Logger } from 'pino';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { type FailedRows, sweepPages } from '../../platform/store/database/sweep.ts';
import { notifyOfOwner } from '../../runs/inbox/notify-owner.ts';
import { type FailedRun, findNextUncounted, takeFailure, uncountedFailures } from '../../runs/inbox/uncounted.ts';
import { disableAfterFailures, lockFailingAutomation } from '../automations/failures.ts';
import { countFailedInRow } from '../history/ended.ts';
import { skipWaitingStarts } from '../history/write.ts';
import { lockFailingSchedule, maxFailedRuns, pauseAfterFailures } from '../schedules/record.ts';

/** A schedule or an automation of which a run failed. */
interface Failing {
  readonly name: string;
  readonly enabled: boolean;
  /** Failures before this time do not count. */
  readonly since: string;
  /** The person as whom the runs act; undefined: they act as an agent. */
  readonly person: string | undefined;
  readonly factoryUid?: string;
  /** Pauses or disables it. */
  stop(reason: string): Promise<void>;
}

async function lockOwner(tx: Queryable, { scheduleId, automationUid, teamId }: FailedRun) {
  if (automationUid !== null) {
    const row = await lockFailingAutomation(tx, teamId, automationUid);
    if (!row) return null;
    const failing: Failing = {
      name: row.name,
      enabled: row.enabled,
      since: row.updated_at,
      person: row.executor_kind === 'user' ? row.executor_uid : undefined,
      factoryUid: row.factory_uid,
      stop: (reason) => disableAfterFailures(tx, automationUid, reason),
    };
    return { failing, kind: 'automation' as const, id: automationUid, owner: { teamId, automationUid } };
  }
  const row = scheduleId === null ? null : await lockFailingSchedule(tx, teamId, scheduleId);
  if (!row || scheduleId === null) return null;
  const failing: Failing = {
    name: row.name,
    enabled: row.enabled,
    since: row.updated_at,
    person: row.executor_kind === 'user' ? row.executor_uid : undefined,
    stop: async (reason) => {
      await pauseAfterFailures(tx, scheduleId, reason);
      await skipWaitingStarts(tx, [scheduleId]);
    },
  };
  return { failing, kind: 'schedule' as const, id: scheduleId, owner: { teamId, scheduleId } };
}

/** Counts the failure of one run, in one transaction. */
async function countFailure(tx: Queryable, runId: string): Promise<void> {
  const run = await takeFailure(tx, runId);
  const found = run && (await lockOwner(tx, run));
  if (!found) return;
  const { failing, kind, id, owner } = found;
  const count = await countFailedInRow(tx, { kind, id, since: failing.since }, runId);
  if (count < 2) return;
  const isStopped = count >= maxFailedRuns && failing.enabled;
  const last = run.statusMessage === null ? '' : ` The last one: ${run.statusMessage}`;
  const what = kind === 'schedule' ? 'Paused' : 'Disabled';
  if (isStopped) await failing.stop(`${what} after ${count} runs in a row failed.${last}`.slice(0, 1_000));
  await notifyOfOwner(tx, owner, {
    on: 'failed_times',
    times: count,
    title: failing.name,
    description: `${isStopped ? `${what} after ${count}` : count} runs in a row failed.${last}`,
    ...(failing.factoryUid === undefined ? {} : { factoryUid: failing.factoryUid }),
    ...(isStopped && failing.person !== undefined ? { person: { uid: failing.person, always: true } } : {}),
    data: { count, run_id: runId, ...(isStopped ? { is_paused: true } : {}) },
  });
}

/** Counts the failures that were not counted yet, oldest first. Each failure is counted once, also if a process dies meanwhile. */
export async function countFailures(
  { db, log }: { readonly db: Database; readonly log: Logger },
  failed: FailedRows,
  signal?: AbortSignal,
): Promise<number> {
  return await sweepPages({
    firstPage: () => db.query(uncountedFailures),
    pageAfter: (id) => db.query(findNextUncounted, [id]),
    pageSize: 100,
    idOf: ({ run_id: id }) => id,
    work: ({ run_id: id }) => db.transaction((tx) => countFailure(tx, id)),
    onFailure: ({ run_id }, error) => log.error({ err: error, run_id }, 'the failure of a run could not be counted'),
    failed,
    signal,
  });
}
