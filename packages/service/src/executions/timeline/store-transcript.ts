import { insertTranscriptChunk } from '../../conversations/transcript-chunks.ts';
import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';

const insertChunk = defineStatement({
  name: 'insert_transcript_chunk',
  text: `
    WITH counted AS (UPDATE runs SET transcript_bytes = transcript_bytes + $5 WHERE id = $4)
    ${insertTranscriptChunk({ executionId: '$1', lastSeq: '$2', lines: '$3' })}`,
  row: {},
});

/** Stores transcript lines of an execution and adds `countedBytes` to the bytes of its run. */
export async function storeTranscript(
  tx: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  chunk: { readonly lastSeq: number; readonly lines: string; readonly countedBytes: number },
): Promise<void> {
  await tx.query(insertChunk, [executionId, chunk.lastSeq, chunk.lines, runId, chunk.countedBytes]);
}
