import type { Domain } from '../../platform/domain.ts';
import { type HarnessRouteDeps, harnessRoutes } from './routes.ts';

/** Routes that the agents in sandboxes call. */
export const harnessSupportDomain = (
  deps: Omit<HarnessRouteDeps, 'definedSkills' | 'filesOfEvent'>,
  definedSkills: HarnessRouteDeps['definedSkills'],
  filesOfEvent: HarnessRouteDeps['filesOfEvent'],
): Domain => ({
  name: 'harness support',
  routes: () => harnessRoutes({ ...deps, definedSkills, filesOfEvent }),
});
