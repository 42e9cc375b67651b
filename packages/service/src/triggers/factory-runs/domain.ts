import type { Domain } from '../../platform/domain.ts';
import { factoryRunRoutes } from './routes.ts';
import { factoryTaskRoutes } from './task-routes.ts';

/** Runs of the foremen of factories, and the tasks that runs work on. */
export const factoryRunsDomain = (
  deps: Parameters<typeof factoryRunRoutes>[0] & Parameters<typeof factoryTaskRoutes>[0],
): Domain => ({
  name: 'factory runs',
  routes: () => [...factoryRunRoutes(deps), ...factoryTaskRoutes(deps)],
});
