import type { RunItem } from '@runyard/contract/runs/runs';
import type { RunState } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text, texts, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { type ReadContext, toRunItems } from './run-items.ts';
import { fromRuns, type RunRow, runColumns, runRow } from './run-row.ts';

/** `joined`: messages of people that came before the run began. */
const readOne = defineStatement({
  name: 'read_run_item',
  text: `
    SELECT ${runColumns}, ARRAY(
      SELECT f.message FROM followups f
      WHERE f.run_id = r.id AND f.created_by_kind <> 'run' AND f.created_at < coalesce(r.started_at, 'infinity') ORDER BY f.position
    ) AS joined
    ${fromRuns} WHERE r.id = $1 AND r.team_id = $2`,
  row: { ...runRow, joined: texts },
});

/** Reads a run of the team; null: the team has none with this id, which may be any text. */
export async function readRunItem(db: Queryable, context: ReadContext, runId: string): Promise<RunItem | null> {
  if (!isUuid(runId)) return null;
  const [row] = await db.query(readOne, [runId, context.teamId]);
  const [item] = row ? await toRunItems(db, context, [row]) : [];
  return row && item ? { ...item, ...submittedPrompt(row) } : null;
}

/** Returns the prompt as people sent it. The service adds to prompts for agents of factories: the ticket, or the name of the delivery. */
function submittedPrompt({ prompt, joined, contents }: RunRow & { joined: readonly string[] }) {
  const sent = [prompt, ...joined].filter((each) => each !== '');
  const isChanged = contents.some(({ kind }) => kind === 'definition');
  return isChanged || sent.length === 0 ? {} : { submitted_prompt: sent.join('\n\n') };
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
