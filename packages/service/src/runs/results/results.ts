/** Stores and reads the last message and the result of runs. */
import type { DeletedDetail } from '../../platform/domain.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, json, nullable, text, uuid } from '../../platform/store/database/statement.ts';

/** A turn of an execution. */
export interface TurnOfRun {
  readonly runId: string;
  readonly executionId: string;
  readonly turn: number;
}

/** The value of a result as JSON, or the artifact that contains it. */
export type SubmittedValue = { readonly json: string } | { readonly artifactId: string };

const submit = defineStatement({
  name: 'submit_result',
  text: `
    INSERT INTO run_results AS x (run_id, submitted, submitted_artifact_id, submitted_execution_id, submitted_turn)
    VALUES ($1, $4::json, $5, $2, $3)
    ON CONFLICT (run_id) DO UPDATE SET submitted = excluded.submitted, submitted_artifact_id = excluded.submitted_artifact_id,
      submitted_execution_id = excluded.submitted_execution_id, submitted_turn = excluded.submitted_turn`,
  row: {},
});

/** Stores a value that fits the schema, until the turn ends. It replaces an earlier value. The caller has locked the run's row. */
export async function storeSubmitted(tx: Queryable, of: TurnOfRun, value: SubmittedValue): Promise<void> {
  const [given, artifactId] = 'json' in value ? [value.json, null] : [null, value.artifactId];
  await tx.query(submit, [of.runId, of.executionId, of.turn, given, artifactId]);
}

/** SQL: the value that the row `x` holds was submitted in this turn. */
const isOfTurn = '$5 AND x.submitted_execution_id = $2 AND x.submitted_turn = $3';

const end = defineStatement({
  name: 'end_turn_with_result',
  text: `
    WITH kept AS (
      INSERT INTO run_results AS x (run_id, final_message) VALUES ($1, $4)
      ON CONFLICT (run_id) DO UPDATE SET final_message = excluded.final_message,
        result = CASE WHEN ${isOfTurn} THEN x.submitted END, artifact_id = CASE WHEN ${isOfTurn} THEN x.submitted_artifact_id END,
        submitted = NULL, submitted_artifact_id = NULL, submitted_execution_id = NULL, submitted_turn = NULL
      RETURNING x.result IS NOT NULL OR x.artifact_id IS NOT NULL AS has_result
    )
    SELECT has_result FROM kept`,
  row: { has_result: boolean },
});

/** How a turn ended. */
interface TurnEnd {
  /** The last message of the agent; null: there is none. */
  readonly finalMessage: string | null;
  readonly succeeded: boolean;
}

/**
 * Makes the value that was submitted in this turn the result of the run, and stores the last message of the agent. If the turn failed or
 * nothing was submitted in it, the run has no result. Returns whether it has one. The caller has locked the run's row.
 */
export async function endTurnWithResult(
  tx: Queryable,
  of: TurnOfRun,
  { finalMessage, succeeded }: TurnEnd,
): Promise<boolean> {
  const [row] = await tx.query(end, [of.runId, of.executionId, of.turn, finalMessage, succeeded]);
  return row?.has_result === true;
}

const readOne = defineStatement({
  name: 'read_result_of_run',
  text: 'SELECT final_message, result, result IS NOT NULL AS has_value, artifact_id FROM run_results WHERE run_id = $1',
  row: {
    final_message: nullable(text()),
    result: nullable(json<unknown>()),
    has_value: boolean,
    artifact_id: nullable(uuid),
  },
});

/** Members of an answer about a run. */
export interface ResultMembers {
  readonly final_message: string | null;
  readonly result?: unknown;
  readonly result_artifact_uid?: string;
}

/** Returns the last message and the result of a run. */
export async function readResult(db: Queryable, runId: string): Promise<ResultMembers> {
  const [row] = await db.query(readOne, [runId]);
  if (!row) return { final_message: null };
  return {
    final_message: row.final_message,
    ...(row.has_value ? { result: row.result } : {}),
    ...(row.artifact_id === null ? {} : { result_artifact_uid: row.artifact_id }),
  };
}

const readSchema = defineStatement({
  name: 'read_output_schema_of_run',
  text: `SELECT q.config->'output_schema' AS schema FROM run_requests q WHERE q.run_id = $1`,
  row: { schema: nullable(json<unknown>()) },
});

/** Returns the output schema of a run; undefined if it has none. */
export async function readOutputSchema(db: Queryable, runId: string): Promise<unknown> {
  const [row] = await db.query(readSchema, [runId]);
  return row?.schema ?? undefined;
}

const deleteOf = defineStatement({
  name: 'delete_old_results',
  text: 'DELETE FROM run_results WHERE run_id = ANY($1::uuid[])',
  row: {},
});

/** Deletes the last messages and the results of these runs, together with their conversations. */
export async function deleteResults(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  await tx.query(deleteOf, [runIds]);
  return { blobKeys: [], isDone: true };
}
