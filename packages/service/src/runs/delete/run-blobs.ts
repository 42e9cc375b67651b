import type { BlobColumn } from '../../domain.ts';
import { executionBlobs } from '../../executions/blob-columns.ts';
import { fileBlobs } from '../../files/blob-columns.ts';
import { skillBlobs } from '../../skills/of-run.ts';

/** All columns that name blobs. Every blob belongs to a run. */
export const runBlobs: readonly BlobColumn[] = [...fileBlobs, ...executionBlobs, skillBlobs];
