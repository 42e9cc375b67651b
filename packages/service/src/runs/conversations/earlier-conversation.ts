import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { Database } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, nullable, uuid } from '../../platform/store/database/statement.ts';
import { conversationText } from './as-text.ts';
import { type EnterRead, readConversationRuns, readCost, readParts, sizeOfConversation } from './read.ts';

/** Says where a new execution continues its conversation. */
interface ExecutionPlace {
  readonly runId: string;
  readonly teamId: string;
  readonly conversationId: string;
  readonly harness: string;
  /** Number of the execution of the same run whose conversation the new execution continues; null: there is no such execution. */
  readonly continues: number | null;
  /** Number of the execution with which the run began anew: the conversation before it is left out. 0: the run did not begin anew. */
  readonly fresh: number;
  /**
   * Present if the execution resumes a turn that was lost with its worker. `after`: number of the last event whose effects the restored
   * files contain; undefined if unknown.
   */
  readonly loss?: { readonly after: number | undefined } | undefined;
}

/**
 * Finds the last earlier execution in which a turn began. Also returns whether the memory of the harness that this execution saved is
 * complete. The memory is complete if it was saved at the end of the execution's last turn, or before a request to a person that has no
 * decision yet. After a decision the agent continues, and the saved memory does not contain this further work.
 * Without `OFFSET 0` the planner may read the decisions of all conversations, and not only those of one execution.
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
    WHERE r.conversation_id = $3 AND r.team_id = $2 AND ($6 = 0 OR r.id = $1 AND e.number >= $6)
      AND CASE WHEN r.id = $1 THEN e.number <= $4 ELSE (r.created_at, r.id) < (SELECT created_at, id FROM runs WHERE id = $1) END
    ORDER BY r.created_at DESC, r.id DESC, e.number DESC LIMIT 1`,
  row: { id: uuid, remembers: nullable(boolean) },
});

/**
 * Reads the number of the last event before the run's last turn. The number is used if the saved files do not say up to which event they
 * contain the effects.
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
  /** For a resumed turn: the part of the conversation after the event `loss.after`, as text; undefined if this part is empty. */
  readonly record?: string | undefined;
}

/**
 * Returns the conversation of earlier executions and earlier runs for a new execution: as the memory of the harness, or as text.
 * `busy`: too many conversations are being read.
 */
export async function readEarlierConversation(
  { db, enterRead }: { readonly db: Database; readonly enterRead: EnterRead },
  place: ExecutionPlace,
): Promise<EarlierConversation | 'busy'> {
  const { runId, teamId, conversationId, harness, continues, fresh, loss } = place;
  const [last] = await db.query(readLast, [runId, teamId, conversationId, continues ?? 0, harness, fresh]);
  const memory = last?.remembers
    ? { kind: 'memory' as const, path: `/api/v1/harness-support/memory/${last.id}` }
    : undefined;
  if (memory !== undefined && loss === undefined) return { conversation: memory };
  const runs = await readConversationRuns(db, teamId, conversationId);
  if (!last && (fresh > 0 || !runs.some(({ isForked }) => isForked))) return {};
  const index = runs.findIndex(({ id }) => id === runId);
  const upTo = continues ?? 0;
  const until = loss && (loss.after ?? (await beginOfLastTurn(db, runId, upTo)));
  const anew = fresh === 0 ? {} : { after: await lastEventBefore(db, runId, fresh) };
  const before = runs
    .slice(fresh === 0 ? 0 : index, index + 1)
    .map((run) => (run.id === runId ? { ...run, upTo, ...anew, ...(until === undefined ? {} : { until }) } : run));
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

const readEndOfExecutions = defineStatement({
  name: 'read_last_event_before_execution',
  text: `
    SELECT max(v.seq) AS seq FROM conversation_events v JOIN executions e ON e.id = v.execution_id
    WHERE v.run_id = $1 AND e.number < $2`,
  row: { seq: nullable(integer) },
});

async function lastEventBefore(db: Database, runId: string, executionNumber: number): Promise<number> {
  const [row] = await db.query(readEndOfExecutions, [runId, executionNumber]);
  return row?.seq ?? 0;
}

async function beginOfLastTurn(db: Database, runId: string, upTo: number): Promise<number> {
  const [row] = await db.query(readBeginOfTurn, [runId, upTo]);
  return row?.seq ?? 0;
}
