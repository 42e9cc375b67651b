import { randomUUIDv7 } from 'node:crypto';
import type { Logger } from 'pino';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { defineStatement, integer, uuid } from '../../platform/store/database/statement.ts';
import { type FailedRows, sweepPages } from '../../platform/store/database/sweep.ts';
import { deleteTranscriptChunks, readTranscriptChunks } from '../conversations/transcript-chunks.ts';

interface TranscriptComposerDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly log: Pick<Logger, 'error'>;
  /** Shortest and longest time between two attempts to make a blob of a broken transcript. */
  readonly retry?: { readonly firstMs: number; readonly longestMs: number };
}

const pageSize = 20;

/** Finds ended executions whose transcript is still in rows. */
export const findComposable = defineStatement({
  name: 'find_composable_transcripts',
  text: `
    SELECT id, transcript_bytes FROM executions
    WHERE lacks_transcript ORDER BY id LIMIT ${pageSize}`,
  row: { id: uuid, transcript_bytes: integer },
});

const findNextComposable = defineStatement({
  name: 'find_next_composable_transcripts',
  text: `
    SELECT id, transcript_bytes FROM executions
    WHERE lacks_transcript AND id > $1 ORDER BY id LIMIT ${pageSize}`,
  row: { id: uuid, transcript_bytes: integer },
});

/** Records the blob and deletes the rows, all or nothing, and only if no other process has recorded a blob. */
const keepBlob = defineStatement({
  name: 'keep_transcript_blob',
  text: `
    WITH kept AS (UPDATE executions SET transcript_blob = $2 WHERE id = $1 AND phase = 'ended' AND transcript_blob IS NULL RETURNING id)
    ${deleteTranscriptChunks('kept')} RETURNING 1 AS deleted`,
  row: { deleted: integer },
});

const usualRetry = { firstMs: 2_000, longestMs: 600_000 };

/**
 * Returns the function that moves the transcripts of ended executions from rows into blobs. The agent of an ended execution writes no more
 * lines. Each attempt writes a separate blob, and one statement records the blob. So nothing is lost or stored twice if a process ends
 * early or another process is faster. A broken transcript is tried again later, and does not delay the other transcripts.
 */
export function makeTranscriptComposer({
  db,
  blobs,
  log,
  retry = usualRetry,
}: TranscriptComposerDeps): () => Promise<void> {
  const failed: FailedRows = new Map();
  return async () => {
    await sweepPages({
      firstPage: () => db.query(findComposable),
      pageAfter: (id) => db.query(findNextComposable, [id]),
      pageSize,
      idOf: ({ id }) => id,
      work: (row) => compose(db, blobs, row),
      onFailure: ({ id }, error, failures) => {
        // Log only repeated failures: a single failure probably means that another process was faster.
        if (failures > 1) log.error({ err: error, execution_id: id, failures }, 'a transcript cannot be composed');
      },
      failed,
      retry,
    });
  };
}

/**
 * Throws if the stored rows are not the whole transcript. Either some rows are damaged, or another process has made the blob and deleted
 * the rows.
 */
async function compose(db: Database, blobs: BlobStore, row: { id: string; transcript_bytes: number }): Promise<void> {
  const { id, transcript_bytes: bytes } = row;
  const key = `transcripts/${id}/${randomUUIDv7()}`;
  const stored = await blobs.put(key, readTranscriptChunks(db, id), { maxBytes: bytes });
  const isWhole = stored.outcome === 'stored' && stored.sizeBytes === bytes;
  const isKept = isWhole && (await db.query(keepBlob, [id, key])).length > 0;
  if (!isKept) await blobs.delete(key);
  if (!isWhole) throw new Error(`the rows of the transcript do not have its ${bytes} bytes`);
}
