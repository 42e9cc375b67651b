import type { Domain } from '../../platform/domain.ts';
import { usageRoutes } from './routes.ts';

/** What teams may spend on models, and what they used. */
export const usageDomain = (deps: Parameters<typeof usageRoutes>[0]): Domain => ({
  name: 'usage',
  routes: () => usageRoutes(deps),
});
