/** Names the parameters of the statement that stores transcript lines. */
interface ChunkParameters {
  readonly executionId: string;
  /** Number of the agent's last event in the chunk. */
  readonly lastSeq: string;
  readonly lines: string;
}

/** Returns SQL that stores lines of an execution's transcript as one row. */
export const insertTranscriptChunk = ({ executionId, lastSeq, lines }: ChunkParameters): string =>
  `INSERT INTO transcript_chunks (execution_id, agent_seq, lines) VALUES (${executionId}, ${lastSeq}, ${lines})`;
