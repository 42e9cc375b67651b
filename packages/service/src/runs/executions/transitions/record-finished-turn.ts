import type { RunState } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  float,
  integer,
  json,
  nullable,
  text,
} from '../../../platform/store/database/statement.ts';
import { tellAgent } from '../notices.ts';
import type { Phase } from '../phases.ts';

const recordTurn = defineStatement({
  name: 'record_finished_turn',
  text: `
    UPDATE executions e SET finished_turns = greatest(e.finished_turns, $3),
      awaits_followup = e.awaits_followup OR e.finished_turns < $3 AND e.awaits_followup IS NOT NULL
    FROM executions before JOIN runs r ON r.id = before.run_id JOIN run_requests q ON q.run_id = r.id
    WHERE e.id = $2 AND before.id = $2 AND r.id = $1
    RETURNING q.config ? 'output_schema' AS needs_result, jsonb_path_query_array(q.config, '$.checks[*].name') AS checks,
      jsonb_path_query_array(q.config, '$.checks[*] ? (@.fresh == true).name') AS fresh_checks,
      before.interrupted_turn IS NOT DISTINCT FROM $3 AS was_interrupted,
      before.finished_turns, before.phase, r.state, r.current_execution_id = e.id AS is_current,
      (q.config->>'idle_timeout_minutes')::float8 * 60 AS idle_seconds,
      EXISTS (SELECT FROM followups f WHERE f.run_id = r.id AND f.execution_id IS NULL) AS has_followups,
      EXISTS (SELECT FROM followups f WHERE f.run_id = r.id AND f.execution_id IS NULL AND f.is_debug) AS has_debug_followups,
      ${tellAgent('CASE WHEN EXISTS (SELECT FROM followups f WHERE f.run_id = r.id AND f.execution_id IS NULL) THEN r.id END')}`,
  row: {
    needs_result: boolean,
    checks: json<string[]>(),
    fresh_checks: json<string[]>(),
    was_interrupted: boolean,
    finished_turns: integer,
    phase: text<Phase>(),
    state: text<RunState>(),
    is_current: boolean,
    idle_seconds: nullable(float),
    has_followups: boolean,
    has_debug_followups: boolean,
  },
});

/** Values of a run and its execution from before the turn was recorded as finished. */
export interface FinishedTurn {
  /** True if the run has an output schema. */
  readonly needs_result: boolean;
  /** Names of the checks of the run. */
  readonly checks: readonly string[];
  /** Names of the checks that run in fresh sandboxes. */
  readonly fresh_checks: readonly string[];
  /** True if a person has interrupted this turn. */
  readonly was_interrupted: boolean;
  /** Number of the last turn that was recorded as finished before this one. */
  readonly finished_turns: number;
  readonly phase: Phase;
  readonly state: RunState;
  /** True if the execution is the current execution of the run. */
  readonly is_current: boolean;
  /** NULL if the run's configuration does not set this value. */
  readonly idle_seconds: number | null;
  /** True if at least one follow-up waits that no execution has taken yet. */
  readonly has_followups: boolean;
  /** True if at least one follow-up is meant for the kept sandbox of a failed setup. */
  readonly has_debug_followups: boolean;
}

const beginTurn = defineStatement({
  name: 'begin_turn_with_followup',
  text: 'UPDATE executions SET awaits_followup = false WHERE id = $1 AND awaits_followup',
  row: {},
});

/** Records that the execution begins a turn with a follow-up, so the next follow-up waits for the end of this turn. */
export async function beginTurnWithFollowup(tx: Queryable, executionId: string): Promise<void> {
  await tx.query(beginTurn, [executionId]);
}

/** Records that the execution has finished the turn with the number `turn`. The caller has locked the run's row. */
export async function recordFinishedTurn(
  tx: Queryable,
  { runId, executionId, turn }: { readonly runId: string; readonly executionId: string; readonly turn: number },
): Promise<FinishedTurn | undefined> {
  const [row] = await tx.query(recordTurn, [runId, executionId, turn]);
  return row;
}
