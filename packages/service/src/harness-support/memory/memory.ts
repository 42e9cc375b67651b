/** What a harness keeps of the conversation for itself, so that a later execution goes on where it was. */
import { randomUUIDv7 } from 'node:crypto';
import { type Attempt, ofAttempt } from '../../executions/run-tokens/attempt.ts';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Database, Statement } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

const maxMemoryBytes = 32 * 1024 * 1024;

const keepBlob: Statement = {
  name: 'keep_memory_blob',
  text: `
    UPDATE executions e SET memory_blob = $2, memory_turn = $3, memory_request = $4 FROM executions before
    WHERE e.id = $1 AND before.id = $1 AND coalesce(e.memory_turn, 0) <= $3
    RETURNING before.memory_blob`,
};

/** Keeps a memory; an older turn's, arriving late, is dropped. Throws `AttemptOver`. */
export async function keepMemory(
  deps: { readonly db: Database; readonly blobs: BlobStore },
  attempt: Attempt,
  /** `requestId`: as before a person was asked; absent: as at the end of the turn. */
  { turn, requestId }: { readonly turn: number; readonly requestId: string | undefined },
  body: AsyncIterable<Uint8Array>,
): Promise<'stored' | 'too_large'> {
  const { executionId } = attempt;
  const key = `memories/${executionId}/${randomUUIDv7()}`;
  const put = await deps.blobs.put(key, body, { maxBytes: maxMemoryBytes });
  if (put.outcome === 'too_large') return 'too_large';
  const [kept] = await ofAttempt(deps, attempt, key, (tx) =>
    tx.query<{ memory_blob: string | null }>(keepBlob, [executionId, key, turn, requestId ?? null]),
  );
  const unused = kept ? kept.memory_blob : key;
  if (unused !== null) await deps.blobs.delete(unused);
  return 'stored';
}

const readKey: Statement = {
  name: 'read_memory_blob',
  text: `
    SELECT e.memory_blob FROM executions e JOIN runs r ON r.id = e.run_id
    WHERE e.id = $1 AND r.team_id = $2 AND r.conversation_id = $3`,
};

/** Blob of an execution's memory; null: there is none in the session's conversation. */
export async function findMemory(
  db: Database,
  session: { readonly teamId: string; readonly conversationId: string },
  executionId: string,
): Promise<string | null> {
  if (!isUuid(executionId)) return null;
  const [row] = await db.query<{ memory_blob: string | null }>(readKey, [
    executionId,
    session.teamId,
    session.conversationId,
  ]);
  return row?.memory_blob ?? null;
}
