import type { AgentEvent } from '@runyard/contract/agent-protocol';
import type { ConversationResponse } from '@runyard/contract/conversations';
import { isTerminal } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import type { Queryable, Statement } from '../store/database/database.ts';
import { startReplay } from './replay.ts';

const pageSize = 2000;

const readEvents: Statement = {
  name: 'read_conversation_events',
  text: `SELECT seq, execution_id, event FROM conversation_events
    WHERE run_id = $1 AND seq > $2
      AND ($3::int IS NULL OR execution_id IN (SELECT id FROM executions WHERE run_id = $1 AND number <= $3))
    ORDER BY seq LIMIT ${pageSize}`,
};

/** A run whose events belong to a conversation. */
export interface ConversationRun {
  readonly id: string;
  readonly state: RunState;
  /** Only what its executions up to this number said; absent: all. */
  readonly upTo?: number;
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
    let executionId: string | undefined;
    for (;;) {
      const rows = await db.query<{ seq: number; execution_id: string; event: AgentEvent }>(readEvents, [
        run.id,
        after,
        run.upTo ?? null,
      ]);
      for (const row of rows) {
        // A sandbox that is gone has left open what a further execution does not go on with.
        if (executionId !== undefined && executionId !== row.execution_id) replay.endRun();
        executionId = row.execution_id;
        replay.apply(row.event);
      }
      const last = rows.at(-1);
      if (!last || rows.length < pageSize) break;
      after = last.seq;
    }
    if (isTerminal(run.state) || run.upTo !== undefined) replay.endRun();
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
