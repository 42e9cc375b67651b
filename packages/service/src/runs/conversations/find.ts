/** Finds messages in the conversation of one run. The text to find is literal, so no pattern from outside is ever executed. */
import type { FindInRunQuery, RunMatch, RunMatches } from '@runyard/contract/runs/conversation-find';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, text } from '../../platform/store/database/statement.ts';

/** Number of characters of a message before the found text, and number of characters in all, that a match shows. */
const excerpt = { before: 60, all: 240 } as const;
/** Maximum number of characters of a message that are searched. The agent stores at most 64 KB of an input or output. */
const maxCharacters = 262_144;

/** SQL of all texts in a JSON value, without its names and signs. */
const wordsOf = (json: string): string =>
  `(SELECT string_agg(word #>> '{}', ' ') FROM jsonb_path_query(${json}, 'strict $.** ? (@.type() == "string")') AS words(word))`;

/**
 * Joins the pieces of each message, as the pages of the conversation do, and selects the messages of a kind with a text. $2: the text in
 * lower case, or ''. $3: the kind. $4: only messages that begin after the event with this number.
 */
const findMessages = defineStatement({
  name: 'find_in_conversation',
  text: `
    WITH said AS (
      SELECT seq, event, event->>'type' AS type,
        CASE event->>'type'
          WHEN 'text' THEN 'text ' || execution_id || ' ' || (event->>'message_id')
          WHEN 'action' THEN 'action ' || execution_id || ' ' || (event->>'action_id')
          WHEN 'action_output' THEN 'action ' || execution_id || ' ' || (event->>'action_id')
          WHEN 'action_result' THEN 'action ' || execution_id || ' ' || (event->>'action_id')
          WHEN 'blocked' THEN 'request ' || (event->'request'->>'request_id')
          WHEN 'decided' THEN 'request ' || (event->>'request_id')
          ELSE 'event ' || seq END AS item
      FROM conversation_events
      WHERE run_id = $1 AND event->>'type' IN ('turn_started', 'text', 'action', 'action_output', 'action_result', 'notice', 'blocked', 'decided')
    ), messages AS (
      SELECT min(seq) AS seq, (array_agg(type ORDER BY seq))[1] AS type, min(event->>'occurred_at') AS at,
        bool_or(type = 'action_result' AND (event->>'state' = 'failed' OR coalesce((event->>'exit_code')::numeric, 0) <> 0)) AS is_failed,
        left(string_agg(CASE type
          WHEN 'turn_started' THEN event->>'prompt'
          WHEN 'text' THEN event->>'text'
          WHEN 'action' THEN concat_ws(' ', event->>'name', ${wordsOf("event->'input'")})
          WHEN 'action_output' THEN event->>'text'
          WHEN 'action_result' THEN ${wordsOf("event->'output'")}
          WHEN 'notice' THEN concat_ws(' ', event->>'name', ${wordsOf("event->'data'")})
          WHEN 'blocked' THEN concat_ws(' ', event->'request'->>'title', ${wordsOf("event->'request'->'action'->'input'")})
          ELSE event->>'message' END,
          CASE WHEN type = 'text' OR type = 'action_output' THEN '' ELSE E'\\n' END ORDER BY seq), ${maxCharacters}) AS words
      FROM said GROUP BY item
    ), found AS (
      SELECT seq, type, is_failed, at, words, strpos(lower(words), $2) AS place FROM messages
      WHERE ($3 = 'any' OR $3 = 'turn' AND type = 'turn_started' OR $3 = 'failure' AND is_failed) AND words <> ''
    ), counted AS (SELECT *, count(*) OVER () AS count FROM found WHERE $2 = '' OR place > 0)
    SELECT seq, type, coalesce(is_failed, false) AS is_failed, at, count,
      substr(words, greatest(1, place - ${excerpt.before}), ${excerpt.all}) AS excerpt
    FROM counted WHERE seq > $4 ORDER BY seq LIMIT $5`,
  row: { seq: integer, type: text(), is_failed: boolean, at: text(), count: integer, excerpt: text() },
});

const kinds: Readonly<Record<string, RunMatch['kind']>> = {
  turn_started: 'turn',
  text: 'text',
  notice: 'notice',
  blocked: 'request',
  decided: 'request',
};

/**
 * Finds the messages of a run's conversation, oldest first. The cost grows with the conversation, so call it in a transaction with a time
 * limit.
 */
export async function findInConversation(
  tx: Queryable,
  runId: string,
  { text, kind, after, limit }: FindInRunQuery,
): Promise<RunMatches> {
  const rows = await tx.query(findMessages, [runId, (text ?? '').toLowerCase(), kind, after, limit]);
  return {
    count: rows[0]?.count ?? 0,
    matches: rows.map(({ seq, type, is_failed, at, excerpt }) => ({
      seq,
      kind: kinds[type] ?? 'action',
      ...(is_failed ? { is_failed } : {}),
      occurred_at: at,
      excerpt,
    })),
  };
}
