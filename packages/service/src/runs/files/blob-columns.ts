import type { BlobColumn } from '../../platform/domain.ts';

const ofRuns = (table: string): string => `SELECT blob_key FROM ${table} WHERE run_id = ANY($1::uuid[])`;

/** The blobs of attachments, artifacts and handoffs. */
export const fileBlobs: readonly BlobColumn[] = [
  { prefix: 'attachments', table: 'attachments', column: 'blob_key', ofRuns: ofRuns('attachments') },
  {
    prefix: 'attachments',
    table: 'prepared_attachments',
    column: 'blob_key',
    ofRuns: ofRuns('prepared_attachments'),
  },
  { prefix: 'artifacts', table: 'artifacts', column: 'blob_key', ofRuns: ofRuns('artifacts') },
  {
    prefix: 'handoffs',
    table: 'snapshot_files',
    column: 'blob_key',
    ofRuns: `SELECT f.blob_key FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id WHERE s.run_id = ANY($1::uuid[])`,
  },
];
