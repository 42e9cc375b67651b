import type { Domain } from '../../platform/domain.ts';
import { factoryRoutes } from './routes.ts';
import { factorySearch } from './search.ts';

/** Factories: groups of webhooks and automations, with agents that execute their runs. */
export const factoriesDomain = (deps: Parameters<typeof factoryRoutes>[0]): Domain => ({
  name: 'factories',
  search: [factorySearch],
  routes: () => factoryRoutes(deps),
});
