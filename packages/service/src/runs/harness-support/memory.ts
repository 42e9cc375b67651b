/** Stores and finds a harness's own memory of the conversation, from which a later execution continues. */
import { randomUUIDv7 } from 'node:crypto';
import { maxMemoryBytes } from '@runyard/contract/limits';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { byteMaskOf } from '../../team/redaction/agent-text.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { type Attempt, ofAttempt } from '../executions/run-tokens/attempt.ts';
import type { RunSession } from '../executions/run-tokens/sessions.ts';
import { recordMemory } from '../executions/saved-state.ts';
import { readTeamRoom, type StorageRefusal, teamFull } from '../files/stored-bytes.ts';

/** Says at which point of the execution a memory was saved. */
interface MemoryMoment {
  readonly turn: number;
  /** The memory was saved before this request to a person; undefined: it was saved at the end of the turn. */
  readonly requestId: string | undefined;
}

/** Stores a harness's memory. Deletes it again if the memory of a later turn is already stored. Throws `AttemptOver`. */
export async function keepMemory(
  deps: { readonly db: Database; readonly blobs: BlobStore; readonly executionDeps: ExecutionDeps },
  attempt: Attempt & Pick<RunSession, 'grantedSecrets' | 'teamId'>,
  { turn, requestId }: MemoryMoment,
  body: AsyncIterable<Uint8Array>,
): Promise<'stored' | 'too_large' | StorageRefusal> {
  const { blobs, executionDeps } = deps;
  const { executionId } = attempt;
  const blobKey = `memories/${executionId}/${randomUUIDv7()}`;
  // The next execution needs the memory to continue, so the memory counts against the limit for texts, which is higher than the limit for
  // files.
  const room = await readTeamRoom(executionDeps, undefined, attempt.teamId);
  const maxBytes = Math.min(maxMemoryBytes, room.texts);
  const put = await blobs.put(blobKey, byteMaskOf(executionDeps, attempt).stream(body), { maxBytes });
  if (put.outcome === 'too_large')
    return maxBytes === maxMemoryBytes ? 'too_large' : teamFull(executionDeps, room.stored);
  room.take(put.sizeBytes);
  const unused = await ofAttempt(deps, attempt, blobKey, (tx) =>
    recordMemory(tx, { executionId, blobKey, sizeBytes: put.sizeBytes, turn, requestId }),
  );
  if (unused !== null) await blobs.delete(unused);
  return 'stored';
}

const readKey = defineStatement({
  name: 'read_memory_blob',
  text: `
    SELECT e.memory_blob FROM executions e JOIN runs r ON r.id = e.run_id
    WHERE e.id = $1 AND r.team_id = $2 AND r.conversation_id = $3`,
  row: { memory_blob: nullable(text()) },
});

/**
 * Returns the blob key of the memory that an execution saved. Returns null if the execution saved none, or does not belong to the
 * conversation of the session's run.
 */
export async function findMemory(
  db: Database,
  session: { readonly teamId: string; readonly conversationId: string },
  executionId: string,
): Promise<string | null> {
  if (!isUuid(executionId)) return null;
  const [row] = await db.query(readKey, [executionId, session.teamId, session.conversationId]);
  return row?.memory_blob ?? null;
}
