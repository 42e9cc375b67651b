import { type Search, searchByName, searchValues } from '../../platform/search.ts';
import { boolean, defineStatement, text, timestamp } from '../../platform/store/database/statement.ts';

const find = defineStatement({
  name: 'search_factories',
  text: searchByName({
    from: 'FROM factories WHERE team_id = $4',
    uid: 'uid',
    name: 'name',
    changedAt: 'updated_at',
  }),
  row: { uid: text(), name: text(), changed_at: timestamp, is_id_match: boolean },
});

/** Finds the factories of the team. */
export const factorySearch: Search = {
  kind: 'factory',
  find: async (db, request) => {
    const rows = await db.query(find, [...searchValues(request), request.teamId]);
    return rows.map((found) => ({ ...found, path: `/factories/${found.uid}` }));
  },
};
