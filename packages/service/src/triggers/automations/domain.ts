import type { Domain } from '../../platform/domain.ts';
import { automationRoutes } from './routes.ts';
import { automationSearch } from './search.ts';

/** Prompts that become runs when something happens. `starts` starts them. */
export const automationsDomain = (deps: Parameters<typeof automationRoutes>[0]): Domain => ({
  name: 'automations',
  search: [automationSearch],
  routes: () => automationRoutes(deps),
});
