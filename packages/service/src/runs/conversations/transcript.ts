import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text, uuid } from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { readTranscriptChunks } from './transcript-chunks.ts';

/** Selects executions that have a transcript, as rows or as a blob. */
const isStored = '(transcript_bytes > 0 OR transcript_blob IS NOT NULL)';

const readExecutions = defineStatement({
  name: 'read_transcript_executions',
  text: `SELECT id FROM executions WHERE run_id = $1 AND ${isStored} ORDER BY number`,
  row: { id: uuid },
});

const findOne = defineStatement({
  name: 'find_execution_with_transcript',
  text: `SELECT id FROM executions WHERE run_id = ANY($1::uuid[]) AND ${isStored} LIMIT 1`,
  row: { id: uuid },
});

const readBlob = defineStatement({
  name: 'read_transcript_blob',
  text: 'SELECT transcript_blob FROM executions WHERE id = $1',
  row: { transcript_blob: nullable(text()) },
});

const findRuns = {
  run: defineStatement({
    name: 'find_transcript_run',
    text: 'SELECT id FROM runs WHERE id = $1',
    row: { id: uuid },
  }),
  conversation: defineStatement({
    name: 'find_transcript_runs_of_conversation',
    text: 'SELECT id FROM runs WHERE conversation_id = $1 ORDER BY created_at, id',
    row: { id: uuid },
  }),
};

/**
 * Returns, in order, the ids of the runs whose transcripts together are the transcript of a run or of a conversation. Returns [] if there
 * is no such run or conversation.
 */
export async function findTranscriptRuns(db: Queryable, of: 'run' | 'conversation', id: string): Promise<string[]> {
  if (!isUuid(id)) return [];
  const rows = await db.query(findRuns[of], [id]);
  return rows.map((row) => row.id);
}

/** Returns true if one of the runs has a transcript. */
export async function hasTranscript(db: Queryable, runIds: readonly string[]): Promise<boolean> {
  return (await db.query(findOne, [runIds])).length > 0;
}

/** Reads the raw transcript of the runs, in order. */
export async function* streamTranscript(
  db: Queryable,
  blobs: BlobStore,
  runIds: readonly string[],
): AsyncGenerator<Buffer> {
  for (const runId of runIds) {
    for (const { id } of await db.query(readExecutions, [runId])) yield* streamExecution(db, blobs, id);
  }
}

/**
 * Reads the rows of a transcript, or its blob. After the end of the execution, another process moves the rows into a blob. If this happens
 * while this function reads the rows, the function continues in the blob, after the bytes that it has already read.
 */
async function* streamExecution(db: Queryable, blobs: BlobStore, executionId: string): AsyncGenerator<Buffer> {
  let sentBytes = 0;
  for await (const lines of readTranscriptChunks(db, executionId)) {
    sentBytes += lines.length;
    yield lines;
  }
  const [row] = await db.query(readBlob, [executionId]);
  if (!row?.transcript_blob) return;
  const blob = await blobs.get(row.transcript_blob, { start: sentBytes, end: Number.MAX_SAFE_INTEGER });
  if (blob) for await (const piece of blob.stream) yield piece as Buffer;
}
