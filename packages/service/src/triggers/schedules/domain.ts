import type { Domain } from '../../platform/domain.ts';
import { measureOverdue } from './claim.ts';
import { scheduleRoutes } from './routes.ts';
import { scheduleSearch } from './search.ts';

/** Schedules: prompts that become runs at fixed times. The domain `starts` creates these runs. */
export const schedulesDomain = (deps: Parameters<typeof scheduleRoutes>[0]): Domain => ({
  name: 'schedules',
  search: [scheduleSearch],
  routes: () => scheduleRoutes(deps),
  gauges: [() => measureOverdue(deps.db)],
});
