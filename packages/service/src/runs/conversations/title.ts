/** Stores the titles that people give to conversations. A conversation without one has only the titles of its runs. */
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../platform/store/database/statement.ts';

const read = defineStatement({
  name: 'read_title_of_conversation',
  text: 'SELECT title FROM conversation_titles WHERE conversation_id = $2 AND team_id = $1',
  row: { title: text() },
});

/** Returns the title of the team's conversation; undefined if nobody has named the conversation. */
export async function readTitle(db: Queryable, teamId: string, conversationId: string): Promise<string | undefined> {
  const [row] = await db.query(read, [teamId, conversationId]);
  return row?.title;
}

const write = defineStatement({
  name: 'write_title_of_conversation',
  text: `
    INSERT INTO conversation_titles AS t (conversation_id, team_id, title) VALUES ($1, $2, $3)
    ON CONFLICT (conversation_id) DO UPDATE SET title = excluded.title WHERE t.team_id = excluded.team_id`,
  row: {},
});

/** Names a conversation. The caller has checked that the conversation belongs to the team. */
export async function writeTitle(
  db: Queryable,
  { teamId, conversationId, title }: Readonly<Record<'teamId' | 'conversationId' | 'title', string>>,
): Promise<void> {
  await db.query(write, [conversationId, teamId, title]);
}

const titlesAtOnce = 1_000;

const deleteUnused = defineStatement({
  name: 'delete_titles_of_deleted_conversations',
  text: `
    DELETE FROM conversation_titles WHERE conversation_id IN (
      SELECT t.conversation_id FROM conversation_titles t
      WHERE NOT EXISTS (SELECT FROM runs r WHERE r.conversation_id = t.conversation_id)
        AND NOT EXISTS (SELECT FROM forked_runs f WHERE f.conversation_id = t.conversation_id) LIMIT ${titlesAtOnce})
    RETURNING 1 AS one`,
  row: { one: integer },
});

/** Deletes titles of conversations that have no run any more. */
export async function deleteUnusedTitles(db: Database): Promise<{ readonly rows: number; readonly more: boolean }> {
  const rows = (await db.query(deleteUnused)).length;
  return { rows, more: rows === titlesAtOnce };
}
