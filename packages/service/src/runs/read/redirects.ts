/**
 * Where the links of sessions and conversations lead on to. A session is an execution, under an id of its own that only
 * readers use: it is live while its sandbox is.
 */
import { livePhases } from '../../executions/transitions/phases.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';

const readSessionRedirect: Statement = {
  name: 'read_session_redirect',
  text: `
    SELECT CASE WHEN e.phase IN ('stopping', 'ended') AND EXISTS (SELECT FROM conversation_events c WHERE c.run_id = r.id)
      THEN r.conversation_id END AS "conversationId"
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.session_id = $1`,
};

/** The conversation of a session that has ended; `{}`: it is live, not begun, or nothing was said. Null: no such session. */
export async function findSessionRedirect(
  db: Queryable,
  sessionId: string,
): Promise<{ readonly conversationId?: string } | null> {
  const [row] = await db.query<{ conversationId: string | null }>(readSessionRedirect, [sessionId]);
  return row ? (row.conversationId === null ? {} : { conversationId: row.conversationId }) : null;
}

const readConversationRedirect: Statement = {
  name: 'read_conversation_redirect',
  text: `
    SELECT e.session_id AS "sessionId" FROM runs r
    LEFT JOIN executions e ON e.id = r.current_execution_id AND e.phase IN ${livePhases}
    WHERE r.conversation_id = $1 ORDER BY e.id DESC NULLS LAST LIMIT 1`,
};

/** The latest live session of a conversation; `{}`: none is. Null: no such conversation. */
export async function findConversationRedirect(
  db: Queryable,
  conversationId: string,
): Promise<{ readonly sessionId?: string } | null> {
  const [row] = await db.query<{ sessionId: string | null }>(readConversationRedirect, [conversationId]);
  return row ? (row.sessionId === null ? {} : { sessionId: row.sessionId }) : null;
}
