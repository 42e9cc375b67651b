import type { Domain } from '../../platform/domain.ts';
import { usageRoutes } from './routes.ts';

/** Stores the budgets of teams for models, and the usage of models. */
export const usageDomain = (deps: Parameters<typeof usageRoutes>[0]): Domain => ({
  name: 'usage',
  routes: () => usageRoutes(deps),
});
