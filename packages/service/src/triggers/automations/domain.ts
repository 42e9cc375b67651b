import type { Domain } from '../../platform/domain.ts';
import { automationRoutes } from './routes.ts';

/** Prompts that become runs when something happens. `starts` starts them. */
export const automationsDomain = (deps: Parameters<typeof automationRoutes>[0]): Domain => ({
  name: 'automations',
  routes: () => automationRoutes(deps),
});
