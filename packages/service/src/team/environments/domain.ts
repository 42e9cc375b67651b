import type { Domain } from '../../platform/domain.ts';
import { type EnvironmentRouteDeps, environmentRoutes } from './environment-routes.ts';
import { guestRoutes } from './guest-routes.ts';
import { environmentSearch } from './search.ts';

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
