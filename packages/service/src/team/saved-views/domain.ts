import type { Domain } from '../../platform/domain.ts';
import { savedViewRoutes } from './routes.ts';

/**
 * Stores views of the dashboard that people have saved. The rows of the views are deleted together with the person's membership in the
 * team.
 */
export const savedViewsDomain = (deps: Parameters<typeof savedViewRoutes>[0]): Domain => ({
  name: 'saved-views',
  routes: () => savedViewRoutes(deps),
});
