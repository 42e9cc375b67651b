import type { Domain, RowRule } from '../../platform/domain.ts';
import { artifactRoutes } from './artifact-routes.ts';
import { harnessFileRoutes } from './harness-routes.ts';
import { preparedRoutes } from './prepared-routes.ts';
import { deleteFollowupFiles, fileBlobs } from './retention.ts';
import { findChanges, foldStorageChanges, measureStored, recountStorage } from './stored-bytes.ts';

/** Selects rows of files whose bytes never arrived. The URL for their upload expired long ago. */
const isAbandoned = `NOT is_ready AND created_at < now() - interval '24 hours'`;

const rows: readonly RowRule[] = [
  { table: 'artifacts', isOver: isAbandoned },
  { table: 'snapshots', isOver: isAbandoned },
  // Selects prepared files that no follow-up has used in time.
  { table: 'prepared_attachments', isOver: `created_at < now() - interval '24 hours'` },
];

type FileDeps = Parameters<typeof artifactRoutes>[0] &
  Parameters<typeof harnessFileRoutes>[0] &
  Parameters<typeof preparedRoutes>[0];

export const filesDomain = (deps: FileDeps): Domain => ({
  name: 'files',
  routes: () => [...artifactRoutes(deps), ...harnessFileRoutes(deps), ...preparedRoutes(deps)],
  blobs: fileBlobs,
  gauges: [() => measureStored(deps.db)],
  retention: {
    rows,
    deleteRunDetail: deleteFollowupFiles,
    nightly: [{ name: 'recounted_teams', run: recountStorage }],
  },
  loops: async () => [
    {
      name: 'the stored bytes of teams',
      everyMs: 2_000,
      due: [findChanges],
      work: () => foldStorageChanges(deps.db),
    },
  ],
});
