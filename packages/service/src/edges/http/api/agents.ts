import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { invalid, refuse } from '../../../platform/serving/refusal.ts';
import { listAgents } from '../../../team/skills/list-agents.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers the list of agents, which are skills of repositories. */
export function registerAgentRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  addRoute(app, routes.listAgents, async ({ principal, query }) => {
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
  });
}
