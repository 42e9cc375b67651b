import type { BlobStore } from '../store/blobs/blobs.ts';
import type { Queryable, Statement } from '../store/database/database.ts';
import { isUuid } from '../store/database/uuid.ts';

const pageSize = 200;

const readExecutions: Statement = {
  name: 'read_transcript_executions',
  text: 'SELECT id FROM executions WHERE run_id = $1 AND (transcript_bytes > 0 OR transcript_blob IS NOT NULL) ORDER BY number',
};

const readChunks: Statement = {
  name: 'read_transcript_chunks',
  text: `SELECT agent_seq, lines FROM transcript_chunks WHERE execution_id = $1 AND agent_seq > $2 ORDER BY agent_seq LIMIT ${pageSize}`,
};

const readBlob: Statement = {
  name: 'read_transcript_blob',
  text: 'SELECT transcript_blob FROM executions WHERE id = $1',
};

const findRuns: Record<'run' | 'conversation', Statement> = {
  run: { name: 'find_transcript_run', text: 'SELECT id FROM runs WHERE id = $1' },
  conversation: {
    name: 'find_transcript_runs_of_conversation',
    text: 'SELECT id FROM runs WHERE conversation_id = $1 ORDER BY created_at, id',
  },
};

/** Ids of the runs whose transcripts make up that of a run or of a conversation, in order; none where there is no such thing. */
export async function findTranscriptRuns(db: Queryable, of: 'run' | 'conversation', id: string): Promise<string[]> {
  if (!isUuid(id)) return [];
  const rows = await db.query<{ id: string }>(findRuns[of], [id]);
  return rows.map((row) => row.id);
}

/** True where there is anything to download. */
export async function hasTranscript(db: Queryable, runIds: readonly string[]): Promise<boolean> {
  const rows = await db.query(
    'SELECT 1 FROM executions WHERE run_id = ANY($1::uuid[]) AND (transcript_bytes > 0 OR transcript_blob IS NOT NULL) LIMIT 1',
    [runIds],
  );
  return rows.length > 0;
}

/**
 * The raw transcript of the runs, in order. Chunks become a blob when their execution has ended, which may happen while
 * they are read: the blob is then read on from the byte that was reached.
 */
export async function* streamTranscript(
  db: Queryable,
  blobs: BlobStore,
  runIds: readonly string[],
): AsyncGenerator<Buffer> {
  for (const runId of runIds) {
    for (const { id } of await db.query<{ id: string }>(readExecutions, [runId])) yield* streamExecution(db, blobs, id);
  }
}

async function* streamExecution(db: Queryable, blobs: BlobStore, executionId: string): AsyncGenerator<Buffer> {
  let sentBytes = 0;
  let after = 0;
  for (;;) {
    const chunks = await db.query<{ agent_seq: number; lines: string }>(readChunks, [executionId, after]);
    for (const chunk of chunks) {
      const bytes = Buffer.from(chunk.lines);
      sentBytes += bytes.length;
      after = chunk.agent_seq;
      yield bytes;
    }
    if (chunks.length === pageSize) continue;
    const [row] = await db.query<{ transcript_blob: string | null }>(readBlob, [executionId]);
    if (!row?.transcript_blob) return;
    const blob = await blobs.get(row.transcript_blob, { start: sentBytes, end: Number.MAX_SAFE_INTEGER });
    if (blob) for await (const piece of blob.stream) yield piece as Buffer;
    return;
  }
}
