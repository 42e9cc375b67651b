/** Moves the transcripts of ended executions from rows into blobs. */
import { randomUUIDv7 } from 'node:crypto';
import type { BlobStore } from '../store/blobs/blobs.ts';
import type { Database, Statement } from '../store/database/database.ts';

const findComposable: Statement = {
  name: 'find_composable_transcripts',
  text: `
    SELECT id, transcript_bytes FROM executions
    WHERE phase = 'ended' AND transcript_blob IS NULL AND transcript_bytes > 0 LIMIT 20`,
};

const readChunks: Statement = {
  name: 'read_chunks_to_compose',
  text: 'SELECT agent_seq, lines FROM transcript_chunks WHERE execution_id = $1 AND agent_seq > $2 ORDER BY agent_seq LIMIT 50',
};

const keepBlob: Statement = {
  name: 'keep_transcript_blob',
  text: `
    WITH kept AS (UPDATE executions SET transcript_blob = $2 WHERE id = $1 AND phase = 'ended' AND transcript_blob IS NULL RETURNING id)
    DELETE FROM transcript_chunks USING kept WHERE execution_id = kept.id RETURNING 1 AS deleted`,
};

async function* linesOf(db: Database, executionId: string): AsyncGenerator<Buffer> {
  let after = 0;
  for (;;) {
    const chunks = await db.query<{ agent_seq: number; lines: string }>(readChunks, [executionId, after]);
    for (const chunk of chunks) {
      after = chunk.agent_seq;
      yield Buffer.from(chunk.lines);
    }
    if (chunks.length === 0) return;
  }
}

/**
 * Composes what can be composed: no writer is left once an execution has ended. Each attempt has a key of its own, and
 * one statement makes it the transcript and removes the rows: a process that dies, or is slower than another, harms nothing.
 */
export async function composeTranscripts(db: Database, blobs: BlobStore): Promise<void> {
  for (const { id, transcript_bytes } of await db.query<{ id: string; transcript_bytes: number }>(findComposable, [])) {
    const key = `transcripts/${id}/${randomUUIDv7()}`;
    const stored = await blobs.put(key, linesOf(db, id), { maxBytes: transcript_bytes });
    const isWhole = stored.outcome === 'stored' && stored.sizeBytes === transcript_bytes;
    const kept = isWhole && (await db.query(keepBlob, [id, key])).length > 0;
    if (!kept) await blobs.delete(key);
  }
}
