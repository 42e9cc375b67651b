import type { Domain } from '../../platform/domain.ts';
import { modelRoutes } from './routes.ts';

/** Manages the models that runs can name. `isOutOfRequests` returns whether the team has used up its budget. */
export const modelsDomain = (
  deps: Parameters<typeof modelRoutes>[0],
  isOutOfRequests: Parameters<typeof modelRoutes>[1],
): Domain => ({
  name: 'models',
  routes: () => modelRoutes(deps, isOutOfRequests),
});
