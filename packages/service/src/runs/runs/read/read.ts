import type { RunItem } from '@runyard/contract/runs';
import type { RunState } from '@runyard/contract/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { type ReadContext, toRunItems } from './run-items.ts';
import { fromRuns, runColumns, runRow } from './run-row.ts';

const readOne = defineStatement({
  name: 'read_run_item',
  text: `SELECT ${runColumns} ${fromRuns} WHERE r.id = $1 AND r.team_id = $2`,
  row: runRow,
});

/** Reads a run of the team; null: the team has none with this id, which may be any text. */
export async function readRunItem(db: Queryable, context: ReadContext, runId: string): Promise<RunItem | null> {
  if (!isUuid(runId)) return null;
  const rows = await db.query(readOne, [runId, context.teamId]);
  return (await toRunItems(db, context, rows))[0] ?? null;
}

/** The facts about a run that a route needs before it reads the rest. */
export interface RunReference {
  readonly id: string;
  readonly state: RunState;
  readonly conversationId: string;
  readonly harness: string;
}

const readReference = defineStatement({
  name: 'read_run_reference',
  text: 'SELECT id, state, conversation_id AS "conversationId", harness FROM runs WHERE id = $1 AND team_id = $2',
  row: { id: uuid, state: text<RunState>(), conversationId: uuid, harness: text() },
});

/** Finds a run of the team; null: the team has none with this id, which may be any text. */
export async function findRun(db: Queryable, teamId: string, runId: string): Promise<RunReference | null> {
  if (!isUuid(runId)) return null;
  const [run] = await db.query(readReference, [runId, teamId]);
  return run ?? null;
}
