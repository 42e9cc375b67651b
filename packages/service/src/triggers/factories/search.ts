import { searchByName } from '../../platform/search.ts';

/** Finds the factories of the team. */
export const factorySearch = searchByName({
  kind: 'factory',
  statement: 'search_factories',
  from: 'FROM factories WHERE team_id = $4',
  uid: 'uid',
  name: 'name',
  changedAt: 'updated_at',
  toThing: (found) => ({ ...found, path: `/factories/${found.uid}` }),
});
