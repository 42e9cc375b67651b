/** SQL: deletes the transcript lines of an execution once for the rows of `relation`. `executionId` is an SQL expression. */
export const deleteTranscript = (executionId: string, relation: string): string =>
  `DELETE FROM transcript_chunks USING ${relation} WHERE transcript_chunks.execution_id = ${executionId}`;
