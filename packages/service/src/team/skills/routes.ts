import { routes } from '@runyard/contract/routes';
import { invalid, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { serve } from '../access/serve.ts';
import { listAgents } from './list-agents.ts';

export type SkillRouteDeps = Parameters<typeof listAgents>[0];

/** The route that lists agents, which are skills of repositories. */
export const skillRoutes = (deps: SkillRouteDeps): readonly ServedRoute[] => [
  serve(routes.listAgents, async ({ principal, query }) => {
    const [owner = '', repo = ''] = query.repo?.split('/') ?? [];
    const outcome = await listAgents(deps, principal, {
      ...(query.repo === undefined ? {} : { repository: { owner, repo } }),
      refresh: query.refresh,
      sortBy: query.sort_by,
      includeMalformed: query.include_malformed_skills,
    });
    switch (outcome.kind) {
      case 'agents':
        return { agents: outcome.agents };
      case 'unreadable':
        return invalid([{ path: 'repo', message: outcome.message }]);
      case 'not_of_environment':
        return refuse('not_authorized', {
          detail: 'repo: a viewer names only repositories of the environments that the viewer may use.',
        });
    }
  }),
];
