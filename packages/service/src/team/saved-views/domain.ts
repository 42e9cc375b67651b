import type { Domain } from '../../platform/domain.ts';
import { savedViewRoutes } from './routes.ts';

/** Views of the dashboard that people have saved. Their rows go with the membership of the person in the team. */
export const savedViewsDomain = (deps: Parameters<typeof savedViewRoutes>[0]): Domain => ({
  name: 'saved-views',
  routes: () => savedViewRoutes(deps),
});
