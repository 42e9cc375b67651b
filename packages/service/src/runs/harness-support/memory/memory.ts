/** Stores and finds a harness's own memory of the conversation, with which a later execution can continue it. */
import { randomUUIDv7 } from 'node:crypto';
import { maxMemoryBytes } from '@runyard/contract/limits';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { byteMaskOf } from '../../../team/redaction/agent-text.ts';
import { recordMemory } from '../../executions/memory/record-memory.ts';
import { type Attempt, ofAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';

/** When a memory was saved. */
interface MemoryMoment {
  readonly turn: number;
  /** The request to a person before which it was saved; undefined: it was saved at the end of the turn. */
  readonly requestId: string | undefined;
}

/** Stores a memory. Deletes it again where a memory of a later turn is stored already. Throws `AttemptOver`. */
export async function keepMemory(
  deps: { readonly db: Database; readonly blobs: BlobStore; readonly vault: Vault },
  attempt: Attempt & Pick<RunSession, 'grantedSecrets'>,
  { turn, requestId }: MemoryMoment,
  body: AsyncIterable<Uint8Array>,
): Promise<'stored' | 'too_large'> {
  const { executionId } = attempt;
  const blobKey = `memories/${executionId}/${randomUUIDv7()}`;
  const put = await deps.blobs.put(blobKey, byteMaskOf(deps, attempt).stream(body), { maxBytes: maxMemoryBytes });
  if (put.outcome === 'too_large') return 'too_large';
  const unused = await ofAttempt(deps, attempt, blobKey, (tx) =>
    recordMemory(tx, { executionId, blobKey, turn, requestId }),
  );
  if (unused !== null) await deps.blobs.delete(unused);
  return 'stored';
}

const readKey = defineStatement({
  name: 'read_memory_blob',
  text: `
    SELECT e.memory_blob FROM executions e JOIN runs r ON r.id = e.run_id
    WHERE e.id = $1 AND r.team_id = $2 AND r.conversation_id = $3`,
  row: { memory_blob: nullable(text()) },
});

/** Returns the blob key of an execution's memory; null where the session's conversation has no such execution or memory. */
export async function findMemory(
  db: Database,
  session: { readonly teamId: string; readonly conversationId: string },
  executionId: string,
): Promise<string | null> {
  if (!isUuid(executionId)) return null;
  const [row] = await db.query(readKey, [executionId, session.teamId, session.conversationId]);
  return row?.memory_blob ?? null;
}
