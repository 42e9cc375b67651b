import type { Domain, RowRule } from '../../platform/domain.ts';
import { oldPullRequestEvents } from './artifacts/pull-requests.ts';
import { deleteFollowupFiles, fileBlobs } from './retention.ts';
import { fileRoutes } from './routes.ts';
import { findChanges, foldStorageChanges, measureStored, recountStorage } from './stored-bytes.ts';

/** Selects rows of files whose bytes never arrived. The upload URLs of these files have expired. */
const isAbandoned = `NOT is_ready AND created_at < now() - interval '24 hours'`;

const rows: readonly RowRule[] = [
  { table: 'artifacts', isOver: isAbandoned },
  { table: 'snapshots', isOver: isAbandoned },
  oldPullRequestEvents,
  // Selects prepared files that no follow-up has used in time.
  { table: 'prepared_attachments', isOver: `created_at < now() - interval '24 hours'` },
];

export const filesDomain = (deps: Parameters<typeof fileRoutes>[0]): Domain => ({
  name: 'files',
  routes: () => fileRoutes(deps),
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
