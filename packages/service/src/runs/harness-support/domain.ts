import type { Domain } from '../../platform/domain.ts';
import { type HarnessRouteDeps, harnessRoutes } from './routes.ts';

/** Routes that the agents in sandboxes call. */
export const harnessSupportDomain = (
  deps: Omit<HarnessRouteDeps, 'definedSkills'>,
  definedSkills: HarnessRouteDeps['definedSkills'],
): Domain => ({
  name: 'harness support',
  routes: () => harnessRoutes({ ...deps, definedSkills }),
});
