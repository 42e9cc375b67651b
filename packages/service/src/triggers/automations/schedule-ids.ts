/** The schedules of the team that triggers name with `schedule_ids`: their times start runs of the automation. */
import type { AutomationTrigger } from '@runyard/contract/automations/automations';
import { maxListeners } from '@runyard/contract/limits';
import type { Fault } from '../../platform/fault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../platform/store/database/statement.ts';
import { readTeamSchedules } from '../schedules/schedules.ts';
import { type AutomationRow, idsOf } from './automation-row.ts';

/** Returns the ids of the schedules that a trigger names. */
export const scheduleIdsOf = ({
  provider,
  filter,
}: Pick<AutomationTrigger, 'provider' | 'filter'>): readonly string[] =>
  provider === 'schedule' ? idsOf(filter?.schedule_ids) : [];

/** Returns an SQL condition: a trigger of the automation `a` names the schedule. `id`: SQL for the id. The index `automations_with_schedule_ids` finds the automations. */
export const listensTo = (id: string): string => {
  const names = (ids: string) =>
    `a.triggers @> jsonb_build_array(jsonb_build_object('provider', 'schedule', 'filter', jsonb_build_object('schedule_ids', ${ids})))`;
  return `a.triggers @> '[{"provider": "schedule", "filter": {}}]' AND (${names(`jsonb_build_array(${id})`)}
      OR ${names(`jsonb_build_object('in', jsonb_build_array(${id}))`)})`;
};

const countListeners = defineStatement({
  name: 'count_automations_that_listen',
  text: `
    SELECT i.id, count(a.uid) AS count FROM unnest($2::text[]) AS i (id) LEFT JOIN automations a
      ON a.team_id = $1 AND a.uid IS DISTINCT FROM $3 AND ${listensTo('i.id')} GROUP BY i.id`,
  row: { id: text(), count: integer },
});

/**
 * Returns the faults of the schedules that triggers name. An id that the stored automation already has is accepted, because the schedule may
 * have been deleted. `keepsUnknown`: other unknown ids are accepted too.
 */
export async function faultsOfScheduleIds(
  tx: Queryable,
  teamId: string,
  triggers: readonly AutomationTrigger[],
  { stored, keepsUnknown }: { readonly stored: AutomationRow | undefined; readonly keepsUnknown: boolean },
): Promise<Fault[]> {
  const named = [...new Set(triggers.flatMap(scheduleIdsOf))];
  if (named.length === 0) return [];
  const present = new Set((await readTeamSchedules(tx, teamId, named)).map(({ id }) => id));
  const before = new Set(stored?.triggers.flatMap(scheduleIdsOf));
  const counts = await tx.query(countListeners, [teamId, [...present], stored?.uid ?? null]);
  const full = new Set(counts.filter(({ count }) => count >= maxListeners).map(({ id }) => id));
  return triggers.flatMap((trigger, index) =>
    scheduleIdsOf(trigger).flatMap((id): Fault[] => {
      const message = full.has(id)
        ? `the schedule ${id} starts ${maxListeners} automations already, which is the most`
        : present.has(id) || before.has(id) || keepsUnknown
          ? undefined
          : `${noSchedule(id)}. List them with GET /agent/schedules`;
      return message === undefined ? [] : [{ path: `triggers.${index}.filter.schedule_ids`, message }];
    }),
  );
}

/** Says that an id names no schedule whose times can start an automation. */
export const noSchedule = (id: string): string => `the team has no schedule ${id}`;
