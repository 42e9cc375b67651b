import type { Domain } from '../../platform/domain.ts';
import { factoryRunRoutes, factoryTaskRoutes } from './routes.ts';

/** Starts runs of the foremen of factories, and stores the tasks on which these runs work. */
export const factoryRunsDomain = (
  deps: Parameters<typeof factoryRunRoutes>[0] & Parameters<typeof factoryTaskRoutes>[0],
): Domain => ({
  name: 'factory runs',
  routes: () => [...factoryRunRoutes(deps), ...factoryTaskRoutes(deps)],
});
