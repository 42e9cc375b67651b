import type { BlobColumn } from '../../platform/domain.ts';

const column = (prefix: string, name: string): BlobColumn => ({
  prefix,
  table: 'executions',
  column: name,
  ofRuns: `SELECT ${name} FROM executions WHERE run_id = ANY($1::uuid[])`,
});

/** The blobs of executions: transcripts, kept workspaces and what the built-in harness remembers. */
export const executionBlobs: readonly BlobColumn[] = [
  column('transcripts', 'transcript_blob'),
  column('workspaces', 'workspace_blob'),
  column('memories', 'memory_blob'),
];
