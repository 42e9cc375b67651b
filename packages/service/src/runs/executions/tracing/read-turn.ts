/** Reads the rows of a turn for its trace. */
import { ActionCategory } from '@runyard/contract/runs/conversations';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, float, integer, nullable, text, uuid } from '../../../platform/store/database/statement.ts';

/** Times are milliseconds since 1970. */
export interface TracedExecution {
  readonly number: number;
  readonly assignedMs: number | null;
  readonly startedMs: number | null;
  readonly harness: string;
  readonly modelId: string;
  readonly backend: string | null;
  readonly conversationId: string;
}

const msOf = (column: string): string => `(extract(epoch FROM ${column}) * 1000)::float8`;

const readExecution = defineStatement({
  name: 'read_traced_execution',
  text: `
    SELECT e.number, ${msOf('e.assigned_at')} AS assigned_ms, ${msOf('e.started_at')} AS started_ms, r.harness, r.model_id,
      e.sandbox->>'backend' AS backend, r.conversation_id
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1`,
  row: {
    number: integer,
    assigned_ms: nullable(float),
    started_ms: nullable(float),
    harness: text(),
    model_id: text(),
    backend: nullable(text()),
    conversation_id: uuid,
  },
});

export async function readTracedExecution(db: Queryable, executionId: string): Promise<TracedExecution | undefined> {
  const [row] = await db.query(readExecution, [executionId]);
  if (!row) return undefined;
  return {
    number: row.number,
    assignedMs: row.assigned_ms,
    startedMs: row.started_ms,
    harness: row.harness,
    modelId: row.model_id,
    backend: row.backend,
    conversationId: row.conversation_id,
  };
}

/** A call of a tool. */
export interface Action {
  readonly category: string;
  readonly startMs: number;
  /** NULL if the call has no result. */
  readonly endMs: number | null;
  readonly state: string | null;
}

/** Maximum number of events that are read for one turn, and maximum number of tool calls in the trace of a turn. */
const mostEvents = 5_000;
const mostActions = 500;

const readEvents = defineStatement({
  name: 'read_traced_actions',
  text: `
    SELECT event->>'type' AS type, event->>'action_id' AS action_id, event->>'occurred_at' AS occurred_at, event->>'category' AS category,
      event->>'state' AS state
    FROM (SELECT seq, execution_id, event FROM conversation_events WHERE run_id = $1 ORDER BY seq DESC LIMIT ${mostEvents}) last
    WHERE execution_id = $2 AND event->>'type' IN ('action', 'action_result') ORDER BY seq`,
  row: {
    type: text(),
    action_id: nullable(text()),
    occurred_at: nullable(text()),
    category: nullable(text()),
    state: nullable(text()),
  },
});

/**
 * Returns the tool calls of a turn. The times of a call come from the sandbox's clock. A time outside of the turn is replaced by the start
 * or the end of the turn.
 */
export async function readActions(
  db: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<Action[]> {
  const within = (time: string | null): number => {
    const ms = Date.parse(time ?? '');
    return Number.isNaN(ms) ? fromMs : Math.min(Math.max(ms, fromMs), toMs);
  };
  const actions = new Map<string, Action>();
  for (const { type, action_id: id, occurred_at, category, state } of await db.query(readEvents, [
    runId,
    executionId,
  ])) {
    if (id === null) continue;
    const at = within(occurred_at);
    const known = actions.get(id);
    // The events may include actions of earlier turns. Leave out actions that ended before this turn began.
    if (type === 'action' && Date.parse(occurred_at ?? '') >= fromMs - clockToleranceMs) {
      if (actions.size >= mostActions) continue;
      const named = ActionCategory.safeParse(category);
      actions.set(id, { category: named.data ?? 'other', startMs: at, endMs: null, state: null });
    } else if (type === 'action_result' && known) actions.set(id, { ...known, endMs: at, state });
  }
  return [...actions.values()];
}

/** The clocks of the sandbox and the database may differ by this time. */
const clockToleranceMs = 1_000;
