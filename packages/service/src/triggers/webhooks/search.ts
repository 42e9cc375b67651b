import { type Search, searchByName, searchValues } from '../../platform/search.ts';
import { boolean, defineStatement, text, timestamp } from '../../platform/store/database/statement.ts';

const find = defineStatement({
  name: 'search_webhooks',
  text: searchByName({
    from: 'FROM webhooks WHERE team_id = $4',
    uid: 'uid',
    name: 'name',
    changedAt: 'updated_at',
    more: 'enabled, factory_uid',
  }),
  row: {
    uid: text(),
    name: text(),
    changed_at: timestamp,
    is_id_match: boolean,
    enabled: boolean,
    factory_uid: text(),
  },
});

/** Finds the webhooks of all factories of the team. */
export const webhookSearch: Search = {
  kind: 'webhook',
  find: async (db, request) => {
    const rows = await db.query(find, [...searchValues(request), request.teamId]);
    return rows.map((found) => ({ ...found, path: `/factories/${found.factory_uid}/webhooks/${found.uid}` }));
  },
};
