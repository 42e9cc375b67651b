import type { Domain } from '../../platform/domain.ts';
import type { FindWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { measureOverdue } from './claim.ts';
import { scheduleRoutes } from './routes.ts';
import { scheduleSearch } from './search.ts';

/** Schedules: prompts that become runs at fixed times. The domain `starts` creates these runs. */
export const schedulesDomain = (deps: Parameters<typeof scheduleRoutes>[0], findWaiting: FindWaiting): Domain => ({
  name: 'schedules',
  search: [scheduleSearch],
  routes: () => scheduleRoutes(deps, findWaiting),
  gauges: [() => measureOverdue(deps.db)],
});
