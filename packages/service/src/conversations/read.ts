import { isTerminal } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import type { Database, Queryable } from '../store/database/database.ts';
import { readOrder } from './order.ts';
import { type ConversationPart, partsOfRun } from './parts.ts';

/** A run whose events belong to a conversation. */
export interface ConversationRun {
  readonly id: string;
  readonly state: RunState;
  /** Only what its executions up to this number said; absent: all. */
  readonly upTo?: number;
}

/** Reads the conversation of the given runs, oldest first, part by part; nothing where none of them has said anything. */
export async function* readParts(db: Database, runs: readonly ConversationRun[]): AsyncGenerator<ConversationPart> {
  for (const { id, state, upTo } of runs) {
    const order = await readOrder(db, id, upTo);
    const isOver = isTerminal(state) || upTo !== undefined;
    yield* partsOfRun(db, { runId: id, order, lastExecutionId: await lastSpeaker(db, id), isOver });
  }
}

async function lastSpeaker(db: Queryable, runId: string): Promise<string | undefined> {
  const [row] = await db.query<{ execution_id: string }>(
    'SELECT execution_id FROM conversation_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 1',
    [runId],
  );
  return row?.execution_id;
}

/** A conversation's runs in the team, oldest first; empty: the team has no such conversation. */
export async function readConversationRuns(
  db: Queryable,
  teamId: string,
  conversationId: string,
): Promise<(ConversationRun & { readonly harness: string })[]> {
  return await db.query<ConversationRun & { readonly harness: string }>(
    'SELECT id, state, harness FROM runs WHERE conversation_id = $2 AND team_id = $1 ORDER BY created_at, id',
    [teamId, conversationId],
  );
}

/** Bytes that the runs have said, at least as many as are stored of them. */
export async function sizeOfConversation(db: Queryable, runs: readonly ConversationRun[]): Promise<number> {
  const [row] = await db.query<{ bytes: string }>(
    'SELECT coalesce(sum(event_bytes), 0) AS bytes FROM runs WHERE id = ANY($1::uuid[])',
    [runs.map(({ id }) => id)],
  );
  return Number(row?.bytes ?? 0);
}
