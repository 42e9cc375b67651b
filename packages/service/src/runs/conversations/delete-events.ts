/** Deletes the conversations of old runs. */
import type { DeletedDetail } from '../../platform/domain.ts';
import type { Queryable, Statement } from '../../platform/store/database/database.ts';
import { defineStatement, integer } from '../../platform/store/database/statement.ts';

const eventsAtOnce = 10_000;

const deleteEvents = defineStatement({
  name: 'delete_old_conversation_events',
  text: `
    DELETE FROM conversation_events c
    USING (SELECT run_id, seq FROM conversation_events WHERE run_id = ANY($1::uuid[]) LIMIT ${eventsAtOnce}) old
    WHERE c.run_id = old.run_id AND c.seq = old.seq RETURNING 1 AS one`,
  row: { one: integer },
});

const deleteChunks: Statement = {
  name: 'delete_old_transcript_chunks',
  text: `
    DELETE FROM transcript_chunks USING executions e
    WHERE e.id = transcript_chunks.execution_id AND e.run_id = ANY($1::uuid[])`,
};

/** Deletes at most 10,000 events of these runs, and with the last of them the rows of their transcripts. */
export async function deleteConversations(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  const events = await tx.query(deleteEvents, [runIds]);
  const isDone = events.length < eventsAtOnce;
  if (isDone) await tx.query(deleteChunks, [runIds]);
  return { blobKeys: [], isDone };
}
