import type { Domain } from '../../platform/domain.ts';
import { usageRoutes } from './routes.ts';

/** Budgets of teams for models, and their use. */
export const usageDomain = (deps: Parameters<typeof usageRoutes>[0]): Domain => ({
  name: 'usage',
  routes: () => usageRoutes(deps),
});
