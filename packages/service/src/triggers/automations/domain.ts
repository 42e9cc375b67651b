import type { Domain } from '../../platform/domain.ts';
import type { FindWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { automationRoutes } from './routes.ts';
import { automationSearch } from './search.ts';

/** Automations: prompts that become runs when a webhook delivery arrives or at the times of a schedule. The domain `starts` starts these runs. */
export const automationsDomain = (deps: Parameters<typeof automationRoutes>[0], findWaiting: FindWaiting): Domain => ({
  name: 'automations',
  search: [automationSearch],
  routes: () => automationRoutes(deps, findWaiting),
});
