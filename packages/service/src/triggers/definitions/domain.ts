import type { Domain } from '../../platform/domain.ts';
import type { FindWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { definitionRoutes, sourceRoutes } from './routes.ts';
import { dueSources } from './source/records.ts';
import { syncDueSources } from './source/sync.ts';
import { openFileChecks } from './validate.ts';

type DefinitionsDeps = Parameters<typeof definitionRoutes>[0] & Parameters<typeof sourceRoutes>[0];

/** Definitions of factories as files, and the syncs of factories with repositories that contain such files. */
export const definitionsDomain = (deps: DefinitionsDeps, findWaiting: FindWaiting): Domain => {
  const checks = openFileChecks(deps.models);
  return {
    name: 'definitions of factories',
    routes: () => [...definitionRoutes(deps, checks, findWaiting), ...sourceRoutes(deps)],
    loops: async () => [
      {
        name: 'syncing factories with their repositories',
        everyMs: 1_000,
        due: [dueSources],
        work: (signal) => syncDueSources(deps, signal),
      },
    ],
    close: checks.close,
  };
};
