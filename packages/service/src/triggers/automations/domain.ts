import type { Domain } from '../../platform/domain.ts';
import { automationRoutes } from './routes.ts';
import { automationSearch } from './search.ts';

/** Automations: prompts that become runs when a webhook delivery arrives or at the times of a schedule. The domain `starts` starts these runs. */
export const automationsDomain = (deps: Parameters<typeof automationRoutes>[0]): Domain => ({
  name: 'automations',
  search: [automationSearch],
  routes: () => automationRoutes(deps),
});
