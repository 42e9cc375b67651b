import path from 'node:path';
import { routes } from '@runyard/contract/routes';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Domain } from '../../platform/domain.ts';
import { invalid, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { serve } from '../access/serve.ts';
import { listAgents } from './list-agents.ts';
import { deleteSkillFiles, skillBlobs } from './of-run.ts';
import { leftoverMs, readFolder, removeLeftovers } from './read-folder.ts';

type SkillRouteDeps = Parameters<typeof listAgents>[0];

/** The route that lists agents, which are skills of repositories. */
const skillRoutes = (deps: SkillRouteDeps): readonly ServedRoute[] => [
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

interface SkillDeps extends SkillRouteDeps {
  readonly settings: Pick<Settings, 'RUNYARD_DATA_DIR'>;
}

export function skillsDomain(deps: SkillDeps): Domain {
  const { settings } = deps;
  return {
    name: 'skills',
    routes: () => skillRoutes(deps),
    blobs: [skillBlobs],
    retention: { deleteRunDetail: deleteSkillFiles },
    loops: async () => [
      {
        name: 'sweep of repositories that were read',
        everyMs: leftoverMs,
        work: () => removeLeftovers(readFolder(path.resolve(settings.RUNYARD_DATA_DIR)), Date.now()),
      },
    ],
  };
}
