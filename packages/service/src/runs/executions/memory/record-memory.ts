import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';

const recordBlob = defineStatement({
  name: 'record_memory_blob',
  text: `
    UPDATE executions e SET memory_blob = $2, memory_turn = $3, memory_request = $4, memory_bytes = $5 FROM executions before
    WHERE e.id = $1 AND before.id = $1 AND coalesce(e.memory_turn, 0) <= $3
    RETURNING before.memory_blob`,
  row: { memory_blob: nullable(text()) },
});

/** A harness's memory of the conversation, stored as a blob. */
interface StoredMemory {
  readonly executionId: string;
  readonly blobKey: string;
  readonly sizeBytes: number;
  readonly turn: number;
  /** The request before which it was saved; absent: it was saved at the end of the turn. */
  readonly requestId: string | undefined;
}

/**
 * Records the memory as the execution's latest, unless the memory of a later turn is recorded. Returns the key of the blob to delete:
 * the previous one, or the given one; null: there was none before.
 */
export async function recordMemory(tx: Queryable, memory: StoredMemory): Promise<string | null> {
  const { executionId, blobKey, sizeBytes, turn, requestId } = memory;
  const [previous] = await tx.query(recordBlob, [executionId, blobKey, turn, requestId ?? null, sizeBytes]);
  return previous ? previous.memory_blob : blobKey;
}
