import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { Database } from '../store/database/database.ts';
import { boolean, defineStatement, nullable, uuid } from '../store/database/statement.ts';
import { conversationText } from './as-text.ts';
import { readConversationRuns, readParts, sizeOfConversation } from './read.ts';
import { type EnterRead, readCost } from './read-limits.ts';

/** The place of a new execution in its conversation. */
interface ExecutionPlace {
  readonly runId: string;
  readonly teamId: string;
  readonly conversationId: string;
  readonly harness: string;
  /** Number of the execution of this run that it continues; null: none. */
  readonly continues: number | null;
}

/**
 * Finds the last earlier execution in which a turn began, and whether its harness's memory is complete: saved at the end of its last
 * turn, or before a request that is not decided. After a decision the agent does further work, which the memory does not contain.
 */
const readLast = defineStatement({
  name: 'read_last_memory',
  text: `
    SELECT e.id, r.harness = $5 AND e.memory_blob IS NOT NULL AND e.memory_turn = turns.n AND NOT EXISTS (
        SELECT FROM conversation_events d WHERE d.run_id = r.id AND d.execution_id = e.id AND d.event->>'type' = 'decided'
          AND d.event->>'request_id' = e.memory_request
      ) AS remembers
    FROM runs r JOIN executions e ON e.run_id = r.id
    JOIN LATERAL (
      SELECT count(*) AS n FROM conversation_events v WHERE v.run_id = r.id AND v.execution_id = e.id AND v.event->>'type' = 'turn_started'
    ) turns ON turns.n > 0
    WHERE r.conversation_id = $3 AND r.team_id = $2
      AND CASE WHEN r.id = $1 THEN e.number <= $4 ELSE (r.created_at, r.id) < (SELECT created_at, id FROM runs WHERE id = $1) END
    ORDER BY r.created_at DESC, r.id DESC, e.number DESC LIMIT 1`,
  row: { id: uuid, remembers: nullable(boolean) },
});

/**
 * Reads what earlier executions and earlier runs of the conversation leave to a new execution: the harness's own memory where it is
 * complete, else the stored conversation as text. Undefined: there is no earlier conversation. `busy`: too many conversations are
 * being read.
 */
export async function readEarlierConversation(
  { db, enterRead }: { readonly db: Database; readonly enterRead: EnterRead },
  place: ExecutionPlace,
): Promise<AgentTask['conversation'] | 'busy'> {
  const { runId, teamId, conversationId, harness, continues } = place;
  const [last] = await db.query(readLast, [runId, teamId, conversationId, continues ?? 0, harness]);
  if (!last) return undefined;
  if (last.remembers) return { kind: 'memory', path: `/api/v1/harness-support/memory/${last.id}` };
  const runs = await readConversationRuns(db, teamId, conversationId);
  const own = runs.findIndex(({ id }) => id === runId);
  const before = runs.slice(0, own + 1).map((run) => (run.id === runId ? { ...run, upTo: continues ?? 0 } : run));
  const read = await enterRead(readCost(await sizeOfConversation(db, before)));
  if (typeof read === 'string') return 'busy';
  try {
    const text = await conversationText(readParts(db, before));
    return text === undefined ? undefined : { kind: 'text', text };
  } finally {
    read.release();
  }
}
