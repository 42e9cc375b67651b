/**
 * Finds the targets of the links to sessions and conversations. A session is an execution, under an id that only readers use. It is
 * live as long as its sandbox.
 */

import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, uuid } from '../../../platform/store/database/statement.ts';
import { leavingPhases, livePhases } from '../../executions/transitions/transition.ts';

const readSessionRedirect = defineStatement({
  name: 'read_session_redirect',
  text: `
    SELECT CASE WHEN e.phase IN ${leavingPhases} AND EXISTS (SELECT FROM conversation_events c WHERE c.run_id = r.id)
      THEN r.conversation_id END AS "conversationId"
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.session_id = $1`,
  row: { conversationId: nullable(uuid) },
});

/** Returns the conversation of a session that has ended; `{}`: the session is live, or has no conversation. Null: no such session. */
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

/** Returns the latest live session of a conversation; `{}`: none is live. Null: no such conversation. */
export async function findConversationRedirect(
  db: Queryable,
  conversationId: string,
): Promise<{ readonly sessionId?: string } | null> {
  const [row] = await db.query(readConversationRedirect, [conversationId]);
  return row ? (row.sessionId === null ? {} : { sessionId: row.sessionId }) : null;
}
