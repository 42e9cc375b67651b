import type { Domain } from '../../platform/domain.ts';
import { factoryRunRoutes } from './routes.ts';

/** Runs of the foremen of factories. */
export const factoryRunsDomain = (deps: Parameters<typeof factoryRunRoutes>[0]): Domain => ({
  name: 'factory runs',
  routes: () => factoryRunRoutes(deps),
});
