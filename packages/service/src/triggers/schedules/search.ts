import { searchByName } from '../../platform/search.ts';
import { boolean, nullable, timestamp } from '../../platform/store/database/statement.ts';

/**
 * Finds the schedules of the team that the caller may see. Finds a personal schedule only for its owner and for administrators of the
 * team. Administrators may delete the schedule.
 */
export const scheduleSearch = searchByName({
  kind: 'schedule',
  statement: 'search_schedules',
  from: 'FROM schedules WHERE team_id = $4 AND automation_uid IS NULL AND (user_uid IS NULL OR user_uid = $5 OR $6::boolean)',
  uid: 'id::text',
  name: 'name',
  changedAt: 'updated_at',
  more: { enabled: boolean, next_run_at: nullable(timestamp) },
  values: ({ teamId, personUid, isAdministrator }) => [teamId, personUid, isAdministrator],
  toThing: ({ next_run_at: next, ...found }) => ({
    ...found,
    path: `/schedules/${found.uid}`,
    ...(next === null ? {} : { next_run_at: next }),
  }),
});
