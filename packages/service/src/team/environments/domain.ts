import type { Domain } from '../../platform/domain.ts';
import { searchByName } from '../../platform/search.ts';
import { type EnvironmentRouteDeps, environmentRoutes } from './environment-routes.ts';
import { guestRoutes } from './guest-routes.ts';
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

/** Stores environments. An environment says what a sandbox contains before the agent begins. */
export const environmentsDomain = (
  deps: Omit<EnvironmentRouteDeps, 'checkSecrets' | 'findWaiting'> & Parameters<typeof guestRoutes>[0],
  checkSecrets: EnvironmentRouteDeps['checkSecrets'],
  findWaiting: EnvironmentRouteDeps['findWaiting'],
): Domain => ({
  name: 'environments',
  search: [environmentSearch],
  retention: { rows: [{ table: 'environment_invitations', isOver: 'expires_at < now()' }] },
  routes: () => [...environmentRoutes({ ...deps, checkSecrets, findWaiting }), ...guestRoutes(deps)],
});
