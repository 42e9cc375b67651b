import type { BlobColumn } from '../../../platform/domain.ts';
import { skillBlobs } from '../../../team/skills/of-run.ts';
import { executionBlobs } from '../../executions/retention.ts';
import { fileBlobs } from '../../files/blob-columns.ts';

/** All columns that name blobs. Every blob belongs to a run. */
export const runBlobs: readonly BlobColumn[] = [...fileBlobs, ...executionBlobs, skillBlobs];
