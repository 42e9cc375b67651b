import { searchByName } from '../../platform/search.ts';
import { guestOf } from './may-use.ts';

/** Searches the environments of the team, and the environments that the person may use as a guest. */
export const environmentSearch = searchByName({
  kind: 'environment',
  statement: 'search_environments',
  from: `FROM environments WHERE uid IN (SELECT uid FROM environments WHERE team_id = $4 UNION ALL ${guestOf('$5')})`,
  uid: 'uid',
  name: `coalesce(config->>'name', uid)`,
  changedAt: 'updated_at',
  values: ({ teamId, personUid }) => [teamId, personUid],
  toThing: (found) => ({ ...found, path: `/environments/${found.uid}` }),
});
