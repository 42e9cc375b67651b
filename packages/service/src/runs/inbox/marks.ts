/** Changes the marks of a person on notifications: read and dismissed. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, uuid } from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';

/** The changes, with the column that each of them sets. */
const changes = {
  read: 'read_at = coalesce(read_at, clock_timestamp())',
  unread: 'read_at = NULL',
  dismiss: 'dismissed_at = coalesce(dismissed_at, clock_timestamp())',
  restore: 'dismissed_at = NULL',
} as const;
export type Mark = keyof typeof changes;

/** Marks the notifications $2 of the person $3, and returns those of them that exist in the team but do not ask the person. */
const defineMark = (mark: Mark) =>
  defineStatement({
    name: `mark_notifications_${mark}`,
    text: `
      WITH own AS (
        SELECT item_uid, user_uid FROM inbox_recipients WHERE team_id = $1 AND item_uid = ANY($2::uuid[]) AND user_uid = $3
        ORDER BY item_uid FOR NO KEY UPDATE
      ), marked AS (
        UPDATE inbox_recipients c SET ${changes[mark]} FROM own WHERE c.item_uid = own.item_uid AND c.user_uid = own.user_uid
      )
      SELECT i.uid FROM inbox_items i WHERE i.team_id = $1 AND i.uid = ANY($2::uuid[])
        AND NOT EXISTS (SELECT FROM inbox_recipients c WHERE c.item_uid = i.uid AND c.user_uid = $3)`,
    row: { uid: uuid },
  });
const statements = {
  read: defineMark('read'),
  unread: defineMark('unread'),
  dismiss: defineMark('dismiss'),
  restore: defineMark('restore'),
};

/** A person of a team. */
export interface Person {
  readonly teamId: string;
  readonly uid: string;
}

/**
 * Marks notifications of a person. Returns false for each UID whose notification asks only other people, and true for all other UIDs, even
 * if the notification no longer exists. A UID may be any text.
 */
export async function markNotifications(
  db: Queryable,
  { teamId, uid }: Person,
  mark: Mark,
  uids: readonly string[],
): Promise<{ notification_uid: string; ok: boolean }[]> {
  const known = [...new Set(uids.filter(isUuid).map((each) => each.toLowerCase()))];
  const refused = new Set((await db.query(statements[mark], [teamId, known, uid])).map((row) => row.uid));
  return uids.map((each) => ({ notification_uid: each, ok: !refused.has(each.toLowerCase()) }));
}

const findUnknown = defineStatement({
  name: 'find_uids_without_notification',
  text: 'SELECT u.uid FROM unnest($1::uuid[]) u (uid) WHERE NOT EXISTS (SELECT FROM inbox_items i WHERE i.uid = u.uid)',
  row: { uid: uuid },
});

/** Returns the UIDs for which no row exists. They may belong to revisions that wait and have no marks yet. */
export async function unknownUids(db: Queryable, uids: readonly string[]): Promise<string[]> {
  const known = uids.filter(isUuid);
  return known.length === 0 ? [] : (await db.query(findUnknown, [known])).map(({ uid }) => uid);
}

const insertAcceptance = defineStatement({
  name: 'insert_marked_acceptances',
  text: `
    WITH item AS (
      INSERT INTO inbox_items (uid, team_id, kind) SELECT a.uid, $1, 'acceptance' FROM unnest($2::uuid[]) a (uid)
      ON CONFLICT DO NOTHING RETURNING uid)
    INSERT INTO inbox_recipients (item_uid, user_uid, team_id) SELECT uid, $3, $1 FROM item`,
  row: {},
});

/** Writes rows for revisions that wait for the person, so that they can be marked. */
export async function keepAcceptances(db: Queryable, { teamId, uid }: Person, uids: readonly string[]): Promise<void> {
  if (uids.length > 0) await db.query(insertAcceptance, [teamId, uids, uid]);
}

const readMarks = defineStatement({
  name: 'read_marks_of_acceptances',
  text: `
    SELECT item_uid AS uid, read_at IS NOT NULL AS is_read, dismissed_at IS NOT NULL AS is_dismissed
    FROM inbox_recipients WHERE item_uid = ANY($1::uuid[]) AND user_uid = $2`,
  row: { uid: uuid, is_read: boolean, is_dismissed: boolean },
});

/** Returns the marks of the person on revisions that wait, by the UIDs of their notifications. */
export async function marksOf(
  db: Queryable,
  { uid }: Person,
  uids: readonly string[],
): Promise<ReadonlyMap<string, { readonly is_read: boolean; readonly is_dismissed: boolean }>> {
  if (uids.length === 0) return new Map();
  return new Map((await db.query(readMarks, [uids, uid])).map((row) => [row.uid, row]));
}
