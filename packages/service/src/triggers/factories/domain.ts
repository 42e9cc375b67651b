import type { Domain } from '../../platform/domain.ts';
import { factoryRoutes } from './routes.ts';
import { factorySearch } from './search.ts';

/** Groups of webhooks and automations. */
export const factoriesDomain = (deps: Parameters<typeof factoryRoutes>[0]): Domain => ({
  name: 'factories',
  search: [factorySearch],
  routes: () => factoryRoutes(deps),
});
