import { randomUUIDv7 } from 'node:crypto';
import { deleteTranscriptChunks, readTranscriptChunks } from '../../conversations/transcript-chunks.ts';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Database } from '../../store/database/database.ts';
import { defineStatement, integer, uuid } from '../../store/database/statement.ts';

/** Finds ended executions whose transcript is still in rows. */
export const findComposable = defineStatement({
  name: 'find_composable_transcripts',
  text: `
    SELECT id, transcript_bytes FROM executions
    WHERE phase = 'ended' AND transcript_blob IS NULL AND has_transcript LIMIT 20`,
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

/**
 * Moves the transcripts of some ended executions from rows into blobs. The agent of an ended execution writes no more. Each attempt
 * writes its own blob, and one statement records it, so a process that ends before that, or is slower than another one, loses nothing
 * and stores nothing twice.
 */
export async function composeTranscripts(db: Database, blobs: BlobStore): Promise<void> {
  for (const { id, transcript_bytes } of await db.query(findComposable)) {
    const key = `transcripts/${id}/${randomUUIDv7()}`;
    const stored = await blobs.put(key, readTranscriptChunks(db, id), { maxBytes: transcript_bytes });
    const isWhole = stored.outcome === 'stored' && stored.sizeBytes === transcript_bytes;
    const isKept = isWhole && (await db.query(keepBlob, [id, key])).length > 0;
    if (!isKept) await blobs.delete(key);
  }
}
