import { type Search, searchByName, searchValues } from '../../platform/search.ts';
import { boolean, defineStatement, nullable, text, timestamp } from '../../platform/store/database/statement.ts';

/** Finds a personal schedule only for its owner and for administrators of the team. Administrators may delete the schedule. */
const find = defineStatement({
  name: 'search_schedules',
  text: searchByName({
    from: `FROM schedules WHERE team_id = $4 AND automation_uid IS NULL AND (user_uid IS NULL OR user_uid = $5 OR $6::boolean)`,
    uid: 'id::text',
    name: 'name',
    changedAt: 'updated_at',
    more: 'enabled, next_run_at',
  }),
  row: {
    uid: text(),
    name: text(),
    changed_at: timestamp,
    is_id_match: boolean,
    enabled: boolean,
    next_run_at: nullable(timestamp),
  },
});

/** Finds the schedules of the team that the caller may see. */
export const scheduleSearch: Search = {
  kind: 'schedule',
  find: async (db, request) => {
    const { teamId, personUid, isAdministrator } = request;
    const rows = await db.query(find, [...searchValues(request), teamId, personUid, isAdministrator]);
    return rows.map(({ next_run_at: next, ...found }) => ({
      ...found,
      path: `/schedules/${found.uid}`,
      ...(next === null ? {} : { next_run_at: next }),
    }));
  },
};
