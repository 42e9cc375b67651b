/** Starts the automations that name a schedule of the team in `schedule_ids`. */
import type { OverlapPolicy } from '@runyard/contract/schedules/schedules';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import { listensTo } from '../../automations/schedule-ids.ts';
import { type Load, readLoads } from '../../history/load.ts';
import type { NewStart, StartOutcome } from '../../history/write.ts';
import { claimDue, claimedRow, claimOne, type DueSchedule } from '../../schedules/claim.ts';
import { decide, noLoad } from '../decide/start.ts';

/** SQL of the listeners of a schedule `s`. Personal schedules and schedules of automations have none. */
const listeners = `CASE WHEN s.automation_uid IS NULL AND s.user_uid IS NULL THEN ARRAY(
      SELECT a.uid FROM automations a WHERE a.team_id = s.team_id AND a.enabled AND ${listensTo('s.id')} ORDER BY a.uid) ELSE '{}' END`;

const claimBatch = defineStatement({ name: 'claim_due_schedules', text: claimDue(listeners), row: claimedRow });
const claimSingle = defineStatement({ name: 'claim_due_schedule', text: claimOne(listeners), row: claimedRow });

/** Locks a batch of due schedules; skips schedules that other processes have locked. */
export const claimDueSchedules = (tx: Queryable): Promise<DueSchedule[]> => tx.query(claimBatch);

/** Locks one schedule if it is due and no other process has locked it. */
export const claimDueSchedule = (tx: Queryable, id: string): Promise<DueSchedule[]> => tx.query(claimSingle, [id]);

/**
 * Locks automations, so that none is deleted before the transaction ends. Skips those that another transaction has locked to change them,
 * because waiting for them could cause a deadlock.
 */
const lock = defineStatement({
  name: 'lock_automations_that_listen',
  text: `
    SELECT a.uid, a.overlap FROM automations a WHERE a.uid = ANY ($1::text[]) ORDER BY a.uid FOR KEY SHARE SKIP LOCKED`,
  row: { uid: text(), overlap: text<OverlapPolicy>() },
});

/** Locks the listeners of schedules. Returns the overlap policies of those that could be locked, by their UIDs. */
export async function lockListeners(
  tx: Queryable,
  due: readonly DueSchedule[],
): Promise<ReadonlyMap<string, OverlapPolicy>> {
  const uids = [...new Set(due.flatMap(({ listener_uids }) => listener_uids))];
  const rows = uids.length === 0 ? [] : await tx.query(lock, [uids]);
  return new Map(rows.map(({ uid, overlap }) => [uid, overlap]));
}

/**
 * Returns a start for each schedule that fires and each of its listeners. A loop of this room creates the runs (`settle.ts`), so that no
 * automation delays or fails the schedule.
 */
export async function startsOfListeners(
  tx: Queryable,
  fired: readonly DueSchedule[],
  overlaps: ReadonlyMap<string, OverlapPolicy>,
): Promise<NewStart[]> {
  const uids = [...overlaps.keys()];
  const found = await readLoads(
    tx,
    uids.map((owner) => ({ kind: 'automation', owner, lane: null })),
  );
  const loads = new Map(uids.map((uid, index) => [uid, found[index] ?? noLoad]));
  return fired.flatMap(({ id, next_run_at: dueAt, listener_uids: listening }) =>
    listening.map((uid): NewStart => {
      const load = loads.get(uid) ?? noLoad;
      const result = resultOf(overlaps.get(uid) ?? 'allow', load);
      if (result.outcome === 'waiting')
        loads.set(uid, {
          ...load,
          waiting: load.waiting + 1,
          undecided: load.undecided + (result.undecided ? 1 : 0),
        });
      return { automationUid: uid, event: { scheduleId: id, dueAt }, lane: null, result };
    }),
  );
}

/** Returns the outcome of a start that is not prepared yet. */
function resultOf(overlap: OverlapPolicy, load: Load): Exclude<StartOutcome, { outcome: 'started' }> {
  const held = load.undecided > 0 ? 'an earlier start of the automation waits' : undefined;
  const decision = decide({ overlap, max_live_runs: null }, load, held);
  switch (decision.kind) {
    case 'start':
      return { outcome: 'waiting', reason: 'the schedule has just fired', undecided: true };
    case 'wait':
      return { outcome: 'waiting', reason: decision.reason, undecided: decision.undecided };
    case 'skip':
      return { outcome: 'skipped', reason: decision.reason };
  }
}
