import { searchByName } from '../../platform/search.ts';
import { boolean, text } from '../../platform/store/database/statement.ts';

/** Finds the automations of all factories of the team. */
export const automationSearch = searchByName({
  kind: 'automation',
  statement: 'search_automations',
  from: 'FROM automations WHERE team_id = $4',
  uid: 'uid',
  name: 'name',
  changedAt: 'updated_at',
  more: { enabled: boolean, factory_uid: text() },
  toThing: (found) => ({ ...found, path: `/factories/${found.factory_uid}/automations/${found.uid}` }),
});
