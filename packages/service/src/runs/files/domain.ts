import type { Domain, RowRule } from '../../platform/domain.ts';
import { deleteFollowupFiles } from './attachments/delete-followup-files.ts';
import { fileBlobs } from './blob-columns.ts';

/** Rows whose bytes never came: the URL for the upload expired long ago. */
const isAbandoned = `NOT is_ready AND created_at < now() - interval '24 hours'`;

const rows: readonly RowRule[] = [
  { table: 'artifacts', isOver: isAbandoned },
  { table: 'snapshots', isOver: isAbandoned },
];

export const filesDomain: Domain = {
  name: 'files',
  blobs: fileBlobs,
  retention: { rows, deleteRunDetail: deleteFollowupFiles },
};
