import type { Domain } from '../../platform/domain.ts';
import { measureOverdue } from './claim.ts';
import { scheduleRoutes } from './routes.ts';
import { scheduleSearch } from './search.ts';

/** Prompts that become runs at fixed times. `starts` fires them. */
export const schedulesDomain = (deps: Parameters<typeof scheduleRoutes>[0]): Domain => ({
  name: 'schedules',
  search: [scheduleSearch],
  routes: () => scheduleRoutes(deps),
  gauges: [() => measureOverdue(deps.db)],
});
