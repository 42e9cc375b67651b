import { waitingMessageLength } from '@runyard/contract/limits';
import type { RunItem, WaitingFollowup } from '@runyard/contract/runs/runs';
import type { RunState } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text, texts, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { toWithheldRight } from '../../../team/access/contents/run-rights.ts';
import { leavingPhases, livePhases } from '../../executions/phases.ts';
import { isDecidedLater, readLaterWithheld } from '../../executions/run-tokens/present-rights.ts';
import { readResult } from '../../results/results.ts';
import { type ReadContext, toRunItems } from './run-items.ts';
import { fromRuns, itemSelect, type RunRow, runRow } from './run-row.ts';

const readVisible = defineStatement({
  name: 'is_visible_run',
  text: 'SELECT FROM runs WHERE id = $1 AND team_id = $2',
  row: {},
});

/** Returns true if the team has a run with this id, which may be any text. */
export async function isVisibleRun(db: Queryable, teamId: string, runId: string): Promise<boolean> {
  return isUuid(runId) && (await db.query(readVisible, [runId, teamId])).length === 1;
}

/**
 * `joined`: messages of people that arrived before the run began. `waiting`: messages that no agent has taken since; the index of waiting
 * follow-ups finds them.
 */
const readOne = defineStatement({
  name: 'read_run_item',
  text: `
    SELECT ${itemSelect}, r.current_execution_id AS execution_id, ARRAY(
      SELECT f.message FROM followups f
      WHERE f.run_id = r.id AND f.created_by_kind <> 'run' AND f.created_at < coalesce(r.started_at, 'infinity') ORDER BY f.position
    ) AS joined, (
      SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('followup_id', f.id, 'message', left(f.message, ${waitingMessageLength}), 'mode', f.mode,
        'attachments', (SELECT coalesce(jsonb_agg(a.file_name ORDER BY a.position), '[]') FROM attachments a WHERE a.followup_id = f.id),
        'created_by', f.created_by_uid, 'created_at', to_char(f.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) ORDER BY f.position)
      FROM followups f WHERE f.run_id = r.id AND f.execution_id IS NULL AND f.request IS NULL AND r.started_at IS NOT NULL
    ) AS waiting
    ${fromRuns} WHERE r.id = $1 AND r.team_id = $2`,
  row: { ...runRow, execution_id: uuid, joined: texts, waiting: nullable(json<WaitingFollowup[]>()) },
});

/** Reads a run of the team; null if the team has no run with this id. The id may be any text. */
export async function readRunItem(db: Queryable, context: ReadContext, runId: string): Promise<RunItem | null> {
  if (!isUuid(runId)) return null;
  const [row] = await db.query(readOne, [runId, context.teamId]);
  const [item] = row ? await toRunItems(db, context, [row]) : [];
  if (!row || !item) return null;
  const waiting = row.waiting === null ? {} : { waiting_followups: row.waiting };
  const [withheld, result] = await Promise.all([withheldNow(db, row), readResult(db, runId)]);
  return { ...item, ...withheld, ...submittedPrompt(row), ...waiting, ...result };
}

/** Returns the rights that are withheld from the run now: it may have lost some since it was created. */
async function withheldNow(
  db: Queryable,
  { rights, execution_id }: RunRow & { readonly execution_id: string },
): Promise<Pick<RunItem, 'withheld'>> {
  const atCreation = (rights?.withheld ?? []).filter((each) => !isDecidedLater(each));
  const withheld = [...atCreation, ...(await readLaterWithheld(db, execution_id))];
  return withheld.length === 0 ? {} : { withheld: withheld.map(toWithheldRight) };
}

/** Returns the prompt as people sent it. To prompts for agents of factories, the service adds the ticket or the name of the delivery. */
function submittedPrompt({ prompt, joined, contents }: RunRow & { joined: readonly string[] }) {
  const sent = [prompt, ...joined].filter((each) => each !== '');
  const isChanged = contents.some(({ kind }) => kind === 'definition');
  return isChanged || sent.length === 0 ? {} : { submitted_prompt: sent.join('\n\n') };
}

/** The facts about a run that a route needs before it reads the run's other data. */
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

/** Finds a run of the team; null if the team has no run with this id. The id may be any text. */
export async function findRun(db: Queryable, teamId: string, runId: string): Promise<RunReference | null> {
  if (!isUuid(runId)) return null;
  const [run] = await db.query(readReference, [runId, teamId]);
  return run ?? null;
}

/**
 * Finds the targets of links to sessions and conversations. A session is an execution; readers get a separate id for it. A session is
 * live as long as its sandbox exists.
 */

const readSessionRedirect = defineStatement({
  name: 'read_session_redirect',
  text: `
    SELECT CASE WHEN e.phase IN ${leavingPhases} AND EXISTS (SELECT FROM conversation_events c WHERE c.run_id = r.id)
      THEN r.conversation_id END AS "conversationId"
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.session_id = $1`,
  row: { conversationId: nullable(uuid) },
});

/**
 * Returns the conversation of a session that has ended; `{}` if the session is live or has no conversation; null if there is no such
 * session.
 */
export async function findSessionRedirect(
  db: Queryable,
  sessionId: string,
): Promise<{ readonly conversationId?: string } | null> {
  const [row] = await db.query(readSessionRedirect, [sessionId]);
  return row ? (row.conversationId === null ? {} : { conversationId: row.conversationId }) : null;
}

const readConversationRedirect = defineStatement({
  name: 'read_conversation_redirect',
  text: `
    SELECT e.session_id AS "sessionId" FROM runs r
    LEFT JOIN executions e ON e.id = r.current_execution_id AND e.phase IN ${livePhases}
    WHERE r.conversation_id = $1 ORDER BY e.id DESC NULLS LAST LIMIT 1`,
  row: { sessionId: nullable(uuid) },
});

/**
 * Returns the latest live session of a conversation; `{}` if no session is live; null if there is no such conversation.
 */
export async function findConversationRedirect(
  db: Queryable,
  conversationId: string,
): Promise<{ readonly sessionId?: string } | null> {
  const [row] = await db.query(readConversationRedirect, [conversationId]);
  return row ? (row.sessionId === null ? {} : { sessionId: row.sessionId }) : null;
}
