/**
 * Stores the transcript of an execution as rows, each with some lines, in the order of the agent's events. Later the rows become one blob.
 */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../platform/store/database/statement.ts';

const pageSize = 50;

const readChunks = defineStatement({
  name: 'read_transcript_chunks',
  text: `SELECT agent_seq, lines FROM transcript_chunks WHERE execution_id = $1 AND agent_seq > $2 ORDER BY agent_seq LIMIT ${pageSize}`,
  row: { agent_seq: integer, lines: text() },
});

/** Reads the stored lines of an execution's transcript, one row at a time. */
export async function* readTranscriptChunks(db: Queryable, executionId: string): AsyncGenerator<Buffer> {
  for (let after = 0; ; ) {
    const chunks = await db.query(readChunks, [executionId, after]);
    for (const chunk of chunks) {
      after = chunk.agent_seq;
      yield Buffer.from(chunk.lines);
    }
    if (chunks.length < pageSize) return;
  }
}

/** Returns SQL that deletes the rows of the executions that the relation `relation` lists by `id`. */
export const deleteTranscriptChunks = (relation: string): string =>
  `DELETE FROM transcript_chunks USING ${relation} WHERE execution_id = ${relation}.id`;

/** Names the parameters of the statement that stores transcript lines. */
interface ChunkParameters {
  readonly executionId: string;
  /** Number of the last agent event in the row. The row contains the lines of this event and of the events that are stored together with it. */
  readonly lastSeq: string;
  readonly lines: string;
}

/** Returns SQL that stores lines of an execution's transcript as one row. If the lines are null, the SQL stores no row. */
export const insertTranscriptChunk = ({ executionId, lastSeq, lines }: ChunkParameters): string =>
  `INSERT INTO transcript_chunks (execution_id, agent_seq, lines)
      SELECT ${executionId}, ${lastSeq}, ${lines} WHERE ${lines}::text IS NOT NULL`;

/**
 * Returns SQL that deletes the transcript rows of an execution if the relation `relation` has a row. `executionId` is an SQL expression.
 */
export const deleteTranscript = (executionId: string, relation: string): string =>
  `DELETE FROM transcript_chunks USING ${relation} WHERE transcript_chunks.execution_id = ${executionId}`;
