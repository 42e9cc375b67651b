import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Domain } from '../../platform/domain.ts';
import { deleteSkillFiles, skillBlobs } from './of-run.ts';
import { leftoverMs, readFolder, removeLeftovers } from './read-folder.ts';
import { type SkillRouteDeps, skillRoutes } from './routes.ts';

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
