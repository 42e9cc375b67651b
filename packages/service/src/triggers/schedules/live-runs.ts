import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, uuid } from '../../platform/store/database/statement.ts';

/** SQL list of the states of a run that has not ended; the index `runs_live_by_schedule` has the same. */
export const liveStates = `('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')`;

/** SQL of the number of live runs of a schedule. `schedule` is SQL of its id. */
export const liveRunsOf = (schedule: string): string =>
  `(SELECT count(*) FROM runs r WHERE r.schedule_id = ${schedule} AND r.state IN ${liveStates})`;

const countLive = defineStatement({
  name: 'count_live_runs_of_schedules',
  text: `
    SELECT i.id, ${liveRunsOf('i.id')} AS live,
      (SELECT count(*) FROM schedule_fires f WHERE f.schedule_id = i.id AND f.outcome = 'waiting') AS waiting
    FROM unnest($1::uuid[]) AS i(id)`,
  row: { id: uuid, live: integer, waiting: integer },
});

/** Runs of a schedule that have not ended, and its fires that wait for the end of one. */
export interface Load {
  readonly live: number;
  readonly waiting: number;
}

/** Counts the live runs and waiting fires of schedules. */
export async function readLoads(db: Queryable, scheduleIds: readonly string[]): Promise<(id: string) => Load> {
  const rows = scheduleIds.length === 0 ? [] : await db.query(countLive, [scheduleIds]);
  const loads = new Map(rows.map(({ id, live, waiting }) => [id, { live, waiting }]));
  return (id) => loads.get(id) ?? { live: 0, waiting: 0 };
}

/** The runs that were created before the newest `$2` live ones. */
const readExcess = defineStatement({
  name: 'read_live_runs_above_limit',
  text: `
    SELECT r.id FROM runs r WHERE r.schedule_id = $1 AND r.state IN ${liveStates}
    ORDER BY r.created_at DESC, r.id DESC OFFSET $2`,
  row: { id: uuid },
});

/** Returns the live runs of a schedule that are older than its newest `keep`. */
export async function readLiveRunsAbove(db: Queryable, scheduleId: string, keep: number): Promise<string[]> {
  return (await db.query(readExcess, [scheduleId, keep])).map(({ id }) => id);
}
