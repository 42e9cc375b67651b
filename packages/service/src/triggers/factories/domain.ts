import type { Domain } from '../../platform/domain.ts';
import { factoryRoutes } from './routes.ts';

/** Groups of webhooks and automations. */
export const factoriesDomain = (deps: Parameters<typeof factoryRoutes>[0]): Domain => ({
  name: 'factories',
  routes: () => factoryRoutes(deps),
});
