/**
 * Counts the live runs and waiting starts of a lane. A lane is a group of runs of a schedule or an automation; the overlap policy
 * applies to each lane separately.
 */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer } from '../../platform/store/database/statement.ts';

/**
 * SQL list of the states of a live run, which is a run that has not ended. Its `closed_at` is NULL, which the indexes `runs_live_by_schedule`
 * and `runs_live_by_automation` require.
 */
export const liveStates = `('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')`;

/** A lane of a schedule of the team, or of an automation. */
export interface Lane {
  readonly kind: 'schedule' | 'automation';
  /** Id of the schedule, or UID of the automation. */
  readonly owner: string;
  /** Hash of the value that the payload has at the concurrency key of the automation; null: there is no such value. */
  readonly lane: string | null;
}

/**
 * Returns an SQL expression for the owner of a start: the UID of its automation, or else the id of its schedule. The index
 * `starts_waiting` has the same expression.
 */
export const ownerOf = (start: string): string => `coalesce(${start}.automation_uid, ${start}.schedule_id::text)`;

/** Returns a FROM clause with the live runs `r` of a schedule, including runs that a person started by hand. */
export const liveOfSchedule = (schedule: string): string =>
  `FROM runs r WHERE r.schedule_id = ${schedule} AND r.closed_at IS NULL AND r.state IN ${liveStates}`;

/** Returns a FROM clause with the live runs `r` in a lane of an automation, and the starts `live` that created them. */
export const liveOfAutomation = (automation: string, lane: string): string => `
  FROM runs r JOIN starts live ON live.run_id = r.id
  WHERE r.metadata ->> 'automation_id' = ${automation} AND r.source IN ('WEBHOOK', 'SCHEDULED_AGENT') AND r.closed_at IS NULL AND r.state IN ${liveStates}
    AND live.automation_uid = ${automation} AND live.lane IS NOT DISTINCT FROM ${lane}`;

const countLoads = defineStatement({
  name: 'count_loads_of_lanes',
  text: `
    SELECT CASE WHEN i.is_schedule THEN (SELECT count(*) ${liveOfSchedule('i.schedule_id')})
        ELSE (SELECT count(*) ${liveOfAutomation('i.owner', 'i.lane')}) END AS live,
      w.waiting, w.undecided
    FROM (SELECT *, CASE WHEN is_schedule THEN owner::uuid END AS schedule_id
      FROM unnest($1::text[], $2::boolean[], $3::text[]) WITH ORDINALITY AS u (owner, is_schedule, lane, n)) i
      CROSS JOIN LATERAL (SELECT count(*) AS waiting, count(*) FILTER (WHERE s.undecided) AS undecided FROM starts s
        WHERE s.outcome = 'waiting' AND ${ownerOf('s')} = i.owner AND s.lane IS NOT DISTINCT FROM i.lane) w
    ORDER BY i.n`,
  row: { live: integer, waiting: integer, undecided: integer },
});

export interface Load {
  readonly live: number;
  readonly waiting: number;
  /** Number of waiting starts to which the policy was not applied, because their runs could not be prepared. */
  readonly undecided: number;
}

/** Counts the live runs and waiting starts of each lane. Returns the counts in the order of `lanes`. */
export async function readLoads(db: Queryable, lanes: readonly Lane[]): Promise<Load[]> {
  if (lanes.length === 0) return [];
  return await db.query(countLoads, [
    lanes.map(({ owner }) => owner),
    lanes.map(({ kind }) => kind === 'schedule'),
    lanes.map(({ lane }) => lane),
  ]);
}
