/** Starts the runs of automations whose schedule triggers are due. */

import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement } from '../../platform/store/database/statement.ts';
import type { SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import type { DueSchedule } from '../schedules/claim.ts';
import type { FireAutomations, FireOfAutomation } from '../schedules/fire-automations.ts';
import { type AutomationRow, automationColumns, automationRow } from './automation-row.ts';
import { disabledReason } from './failures.ts';
import { type Spawn, spawner } from './spawn.ts';
import { decideStart, insertStart } from './starts.ts';

/**
 * Skips automations that another transaction has locked. The caller holds locks of schedules, and a change of an
 * automation locks them after the automation, so waiting here could be a deadlock.
 */
const lockFired = defineStatement({
  name: 'lock_automations_of_due_schedules',
  text: `
    SELECT ${automationColumns} FROM automations a WHERE a.uid = ANY ($1::text[]) ORDER BY a.uid FOR NO KEY UPDATE SKIP LOCKED`,
  row: automationRow,
});

/** Returns the function that fires due schedules of automations, all of them in its transaction. */
export function fireAutomationsWith(deps: SubmitDeps): FireAutomations {
  return async (tx, due) => {
    const uids = [...new Set(due.flatMap(({ automation_uid: uid }) => uid ?? []))];
    const rows = new Map((await tx.query(lockFired, [uids])).map((row) => [row.uid, row]));
    const spawn = await spawner(deps, tx, [...rows.values()]);
    const fires: FireOfAutomation[] = [];
    for (const schedule of due) {
      const automation = rows.get(schedule.automation_uid ?? '');
      if (automation) fires.push({ scheduleId: schedule.id, ...(await fireOne(tx, automation, schedule, spawn)) });
    }
    return fires;
  };
}

async function fireOne(
  tx: Queryable,
  automation: AutomationRow,
  schedule: DueSchedule,
  spawn: Spawn,
): Promise<Omit<FireOfAutomation, 'scheduleId'>> {
  if (!automation.enabled) return { outcome: 'skipped', reason: disabledReason(automation), stops: true };
  const decision = await decideStart(tx, automation, null);
  const event = { fireId: schedule.fire_id };
  switch (decision.kind) {
    case 'skip':
      return { outcome: 'skipped', reason: decision.reason };
    case 'wait':
      await insertStart(tx, automation.uid, event, { lane: null, runId: null });
      return { outcome: 'waiting', reason: decision.reason };
    case 'start': {
      const { id, name, cron_schedule: cronSchedule } = schedule;
      const spawned = await spawn(automation, { kind: 'time', schedule: { id, name, cronSchedule } });
      if (spawned.kind === 'failed')
        return { outcome: 'failed', reason: spawned.reason, ...(spawned.disabled ? { stops: true } : {}) };
      const { runId } = spawned;
      await insertStart(tx, automation.uid, event, { lane: null, runId, cancelsPrevious: decision.cancelsPrevious });
      return { outcome: 'started', runId };
    }
  }
}
