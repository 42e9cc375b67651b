import type { Domain } from '../../platform/domain.ts';
import { scheduleRoutes } from './routes.ts';

/** Prompts that become runs at fixed times. `starts` fires them. */
export const schedulesDomain = (deps: Parameters<typeof scheduleRoutes>[0]): Domain => ({
  name: 'schedules',
  routes: () => scheduleRoutes(deps),
});
