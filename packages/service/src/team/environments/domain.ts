import type { Domain } from '../../platform/domain.ts';
import { type EnvironmentRouteDeps, environmentRoutes } from './environment-routes.ts';
import { guestRoutes } from './guest-routes.ts';
import { environmentSearch } from './search.ts';

/** Stores environments. An environment says what a sandbox contains before the agent begins. */
export const environmentsDomain = (
  deps: Omit<EnvironmentRouteDeps, 'checkSecrets'> & Parameters<typeof guestRoutes>[0],
  checkSecrets: EnvironmentRouteDeps['checkSecrets'],
): Domain => ({
  name: 'environments',
  search: [environmentSearch],
  retention: { rows: [{ table: 'environment_invitations', isOver: 'expires_at < now()' }] },
  routes: () => [...environmentRoutes({ ...deps, checkSecrets }), ...guestRoutes(deps)],
});
