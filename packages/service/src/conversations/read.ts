import type { AgentEvent } from '@runyard/contract/agent-protocol';
import type { ConversationResponse } from '@runyard/contract/conversations';
import { isTerminal, type RunState } from '@runyard/contract/states';
import type { Queryable, Statement } from '../store/database.ts';
import { startReplay } from './replay.ts';

const pageSize = 2000;

const readEvents: Statement = {
  name: 'read_conversation_events',
  text: `SELECT seq, event FROM conversation_events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT ${pageSize}`,
};

/** A run whose events belong to a conversation. */
export interface ConversationRun {
  readonly id: string;
  readonly state: RunState;
}

/** Reads the conversation of the given runs, oldest first; null where none of them has said anything. */
export async function readConversation(
  db: Queryable,
  conversationId: string,
  runs: readonly ConversationRun[],
): Promise<ConversationResponse | null> {
  const replay = startReplay(conversationId);
  for (const run of runs) {
    let after = 0;
    for (;;) {
      const rows = await db.query<{ seq: number; event: AgentEvent }>(readEvents, [run.id, after]);
      for (const row of rows) replay.apply(row.event);
      const last = rows.at(-1);
      if (!last || rows.length < pageSize) break;
      after = last.seq;
    }
    if (isTerminal(run.state)) replay.endRun();
  }
  const conversation = replay.read();
  return conversation.steps.length > 0 ? conversation : null;
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
