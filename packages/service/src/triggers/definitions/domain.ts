import type { Domain } from '../../platform/domain.ts';
import { dueSources } from './source/records.ts';
import { type SyncDeps, syncDueSources } from './source/sync.ts';

export const definitionsDomain = (deps: SyncDeps): Domain => ({
  name: 'definitions of factories',
  loops: async () => [
    {
      name: 'syncing factories with their repositories',
      everyMs: 1_000,
      due: [dueSources],
      work: (signal) => syncDueSources(deps, signal),
    },
  ],
});
