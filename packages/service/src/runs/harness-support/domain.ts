import type { Domain } from '../../platform/domain.ts';
import { type HarnessRouteDeps, harnessRoutes } from './routes.ts';

/** The service's side of the agents in sandboxes. */
export const harnessSupportDomain = (
  deps: Omit<HarnessRouteDeps, 'definedSkills'>,
  definedSkills: HarnessRouteDeps['definedSkills'],
): Domain => ({
  name: 'harness support',
  routes: () => harnessRoutes({ ...deps, definedSkills }),
});
