/** Live runs of automations, and deliveries and fires that wait for the end of one. */

import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, uuid } from '../../platform/store/database/statement.ts';
import { type Load, liveStates } from '../schedules/live-runs.ts';

/** SQL: the starts in one lane of an automation whose runs are live. The index `runs_live_by_automation` finds them. */
export const liveIn = (automation: string, lane: string): string => `
  FROM runs r JOIN automation_starts live ON live.run_id = r.id
  WHERE r.metadata ->> 'automation_id' = ${automation} AND r.source IN ('WEBHOOK', 'SCHEDULED_AGENT') AND r.state IN ${liveStates}
    AND live.automation_uid = ${automation} AND live.lane IS NOT DISTINCT FROM ${lane}`;

const count = defineStatement({
  name: 'count_live_runs_of_automation',
  text: `
    SELECT (SELECT count(*) ${liveIn('$1', '$2')}) AS live,
      (SELECT count(*) FROM automation_starts WHERE automation_uid = $1 AND lane IS NOT DISTINCT FROM $2 AND run_id IS NULL) AS waiting`,
  row: { live: integer, waiting: integer },
});

/** Counts what is live and what waits in a lane of an automation. */
export async function readLoad(db: Queryable, automationUid: string, lane: string | null): Promise<Load> {
  const [row] = await db.query(count, [automationUid, lane]);
  return row ?? { live: 0, waiting: 0 };
}

const readOlder = defineStatement({
  name: 'read_live_runs_before_start_of_automation',
  text: `SELECT r.id ${liveIn('$1', '$2')} AND live.id < $3`,
  row: { id: uuid },
});

/** Returns the live runs of a lane that were started earlier. */
export async function readLiveRunsBefore(
  db: Queryable,
  automationUid: string,
  lane: string | null,
  startId: string,
): Promise<string[]> {
  return (await db.query(readOlder, [automationUid, lane, startId])).map(({ id }) => id);
}
