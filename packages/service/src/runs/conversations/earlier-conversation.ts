import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { Database } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, nullable, uuid } from '../../platform/store/database/statement.ts';
import { conversationText } from './as-text.ts';
import { type EnterRead, readConversationRuns, readCost, readParts, sizeOfConversation } from './read.ts';

/** The place of a new execution in its conversation. */
interface ExecutionPlace {
  readonly runId: string;
  readonly teamId: string;
  readonly conversationId: string;
  readonly harness: string;
  /** Number of the earlier execution of this run that this execution continues; null: none. */
  readonly continues: number | null;
  /** Present: the execution resumes a lost turn. `after`: number of the last event whose effects are in its files; undefined: unknown. */
  readonly loss?: { readonly after: number | undefined } | undefined;
}

/**
 * Finds the last earlier execution in which a turn began, and whether its harness's memory is complete: saved at the end of its last turn,
 * or before a request that has no decision yet. After a decision the agent continues, and the memory does not contain its further work.
 * Without `OFFSET 0` the planner may evaluate all decisions of all conversations at once.
 */
const readLast = defineStatement({
  name: 'read_last_memory',
  text: `
    SELECT e.id, r.harness = $5 AND e.memory_blob IS NOT NULL AND e.memory_turn = turns.n AND NOT EXISTS (
        SELECT FROM conversation_events d WHERE d.run_id = r.id AND d.execution_id = e.id AND d.event->>'type' = 'decided'
          AND d.event->>'request_id' = e.memory_request OFFSET 0
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
 * Number of the event with which the run's last turn began. Used if an archive has no record of the events that it contains.
 */
const readBeginOfTurn = defineStatement({
  name: 'read_begin_of_last_turn',
  text: `
    SELECT max(v.seq) - 1 AS seq FROM conversation_events v JOIN executions e ON e.id = v.execution_id
    WHERE v.run_id = $1 AND e.number <= $2 AND v.event->>'type' = 'turn_started'`,
  row: { seq: nullable(integer) },
});

/** The conversation so far, as a new execution gets it. */
export interface EarlierConversation {
  /** The harness's own memory if it is complete, otherwise the stored conversation as text; undefined if there is neither. */
  readonly conversation?: AgentTask['conversation'];
  /** For a resumed turn: the conversation after `loss.after`, as text; undefined if there is none. */
  readonly record?: string | undefined;
}

/**
 * Reads the memory or conversation that earlier executions and earlier runs of the conversation left for a new
 * execution. `busy`: too many conversations are being read.
 */
export async function readEarlierConversation(
  { db, enterRead }: { readonly db: Database; readonly enterRead: EnterRead },
  place: ExecutionPlace,
): Promise<EarlierConversation | 'busy'> {
  const { runId, teamId, conversationId, harness, continues, loss } = place;
  const [last] = await db.query(readLast, [runId, teamId, conversationId, continues ?? 0, harness]);
  if (!last) return {};
  const memory = last.remembers
    ? { kind: 'memory' as const, path: `/api/v1/harness-support/memory/${last.id}` }
    : undefined;
  if (memory !== undefined && loss === undefined) return { conversation: memory };
  const runs = await readConversationRuns(db, teamId, conversationId);
  const index = runs.findIndex(({ id }) => id === runId);
  const upTo = continues ?? 0;
  const until = loss && (loss.after ?? (await beginOfLastTurn(db, runId, upTo)));
  const before = runs
    .slice(0, index + 1)
    .map((run) => (run.id === runId ? { ...run, upTo, ...(until === undefined ? {} : { until }) } : run));
  const since = until === undefined ? [] : runs.slice(index, index + 1).map((run) => ({ ...run, upTo, after: until }));
  const admission = await enterRead(readCost(await sizeOfConversation(db, before)));
  if (typeof admission === 'string') return 'busy';
  try {
    const text = memory === undefined ? await conversationText(readParts(db, before)) : undefined;
    const conversation = memory ?? (text === undefined ? undefined : { kind: 'text' as const, text });
    const record = since.length === 0 ? undefined : await conversationText(readParts(db, since));
    return { ...(conversation ? { conversation } : {}), record: record === '' ? undefined : record };
  } finally {
    admission.release();
  }
}

async function beginOfLastTurn(db: Database, runId: string, upTo: number): Promise<number> {
  const [row] = await db.query(readBeginOfTurn, [runId, upTo]);
  return row?.seq ?? 0;
}
