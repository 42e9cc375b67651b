import { type Search, searchByName, searchValues } from '../../platform/search.ts';
import { boolean, defineStatement, text, timestamp } from '../../platform/store/database/statement.ts';
import { guestOf } from './may-use.ts';

const find = defineStatement({
  name: 'search_environments',
  text: searchByName({
    from: `FROM environments WHERE uid IN (SELECT uid FROM environments WHERE team_id = $4 UNION ALL ${guestOf('$5')})`,
    uid: 'uid',
    name: `coalesce(config->>'name', uid)`,
    changedAt: 'updated_at',
  }),
  row: { uid: text(), name: text(), changed_at: timestamp, is_id_match: boolean },
});

/** Searches the environments of the team, and the environments that the person may use as a guest. */
export const environmentSearch: Search = {
  kind: 'environment',
  find: async (db, request) => {
    const rows = await db.query(find, [...searchValues(request), request.teamId, request.personUid]);
    return rows.map((found) => ({ ...found, path: `/environments/${found.uid}` }));
  },
};
