import type { Domain } from '../../platform/domain.ts';
import { factoryRunRoutes, factoryTaskRoutes } from './routes.ts';

/** Runs of the foremen of factories, and the tasks that runs work on. */
export const factoryRunsDomain = (
  deps: Parameters<typeof factoryRunRoutes>[0] & Parameters<typeof factoryTaskRoutes>[0],
): Domain => ({
  name: 'factory runs',
  routes: () => [...factoryRunRoutes(deps), ...factoryTaskRoutes(deps)],
});
