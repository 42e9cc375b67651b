import path from 'node:path';
import type { Settings } from '@runyard/contract/settings';
import type { Domain } from '../../platform/domain.ts';
import { deleteSkillFiles, skillBlobs } from './of-run.ts';
import { leftoverMs, readFolder, removeLeftovers } from './read-folder.ts';

export function skillsDomain({ settings }: { readonly settings: Pick<Settings, 'RUNYARD_DATA_DIR'> }): Domain {
  return {
    name: 'skills',
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
