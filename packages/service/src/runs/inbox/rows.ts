/** Reads rows of notifications. */

import type { NotificationKind } from '@runyard/contract/inbox/notifications';
import { maxCountedNotifications } from '@runyard/contract/limits';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';

/** Maximum number of addresses of pull requests that a notification shows. */
const maxUrls = 20;

/** Maximum number of characters of a description. */
export const maxDescription = 400;

/** SQL: the uid of each member of the team $1 whom the notification `i` asks and who has not dismissed it. */
const living = `(
  SELECT u.uid, u.email FROM inbox_recipients c JOIN users u ON u.uid = c.user_uid
  JOIN team_members m ON m.user_id = u.id AND m.team_id = i.team_id
  WHERE c.item_uid = i.uid AND c.dismissed_at IS NULL)`;

const columns = `i.uid, i.kind, i.factory_uid, i.created_at, r.id AS run_id, coalesce(r.title, i.about->>'title') AS title, i.about->>'description' AS about, i.schedule_id, i.automation_uid,
  left(r.status_message, ${maxDescription + 1}) AS status_message, r.conversation_id,
  CASE WHEN r.open_request IS NOT NULL THEN jsonb_build_object('request_id', r.open_request->'request_id', 'title', r.open_request->'title',
    'options', r.open_request->'options') END AS question,
  r.metadata->>'ticket_url' AS ticket_url,
  (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(l)) ORDER BY l.uid), '[]') FROM ${living} l) AS recipients,
  CASE WHEN 'PULL_REQUEST' = ANY(r.artifact_types) THEN (
    SELECT jsonb_agg(p.url ORDER BY p.created_at, p.id) FROM (
      SELECT a.data->>'url' AS url, a.created_at, a.id FROM artifacts a
      WHERE a.run_id = r.id AND a.artifact_type = 'PULL_REQUEST' AND a.is_ready ORDER BY a.created_at, a.id LIMIT ${maxUrls}) p) END AS urls`;

const row = {
  uid: uuid,
  kind: text<NotificationKind>(),
  factory_uid: nullable(text()),
  created_at: timestamp,
  run_id: nullable(uuid),
  title: text(),
  about: nullable(text()),
  schedule_id: nullable(uuid),
  automation_uid: nullable(text()),
  status_message: nullable(text()),
  question: nullable(json<{ request_id: string; title: string; options: string[] | null }>()),
  conversation_id: nullable(uuid),
  ticket_url: nullable(text()),
  recipients: json<{ uid: string; email?: string }[]>(),
  urls: nullable(json<string[]>()),
  is_read: nullable(boolean),
};

/** SQL: the notification `i` is about no revision, and has the wanted factory $2 and one of the wanted kinds $3. $4: the list begins after this UID. */
const isWanted = `i.kind <> 'acceptance' AND ($2::text IS NULL OR i.factory_uid = $2) AND ($3::text[] IS NULL OR i.kind = ANY($3))`;

/** $5: number of rows. $6: the person. $7: only read ones, or only others; NULL: both. */
const readOwn = defineStatement({
  name: 'read_notifications_of_person',
  text: `
    SELECT ${columns}, o.read_at IS NOT NULL AS is_read
    FROM inbox_recipients o JOIN inbox_items i ON i.uid = o.item_uid LEFT JOIN runs r ON r.id = i.run_id
    WHERE o.user_uid = $6 AND o.team_id = $1 AND o.dismissed_at IS NULL AND o.item_uid < $4 AND ${isWanted}
      AND ($7::boolean IS NULL OR (o.read_at IS NOT NULL) = $7)
    ORDER BY o.item_uid DESC LIMIT $5`,
  row,
});

/** $6: only notifications of this person; NULL: of any member. */
const readOfTeam = defineStatement({
  name: 'read_notifications_of_team',
  text: `
    SELECT ${columns}, NULL::boolean AS is_read
    FROM (
      SELECT DISTINCT c.item_uid FROM inbox_recipients c
      JOIN users u ON u.uid = c.user_uid JOIN team_members m ON m.user_id = u.id AND m.team_id = c.team_id
      WHERE c.team_id = $1 AND c.dismissed_at IS NULL AND c.item_uid < $4 AND ($6::text IS NULL OR c.user_uid = $6)
    ) o JOIN inbox_items i ON i.uid = o.item_uid LEFT JOIN runs r ON r.id = i.run_id
    WHERE ${isWanted}
    ORDER BY o.item_uid DESC LIMIT $5`,
  row,
});

const readOne = defineStatement({
  name: 'read_notification',
  text: `
    SELECT ${columns},
      (SELECT o.read_at IS NOT NULL FROM inbox_recipients o WHERE o.item_uid = i.uid AND o.user_uid = $3) AS is_read
    FROM inbox_items i LEFT JOIN runs r ON r.id = i.run_id WHERE i.team_id = $1 AND i.uid = $2 AND i.kind <> 'acceptance'`,
  row,
});

export type NotificationRow = RowOf<typeof readOwn>;

/** Which notifications to read. */
export interface Wanted {
  readonly teamId: string;
  readonly factoryUid: string | undefined;
  readonly kinds: readonly NotificationKind[] | undefined;
  /** The list begins after the notification with this UID. */
  readonly before: string;
  readonly count: number;
}

const valuesOf = ({ teamId, factoryUid, kinds, before, count }: Wanted) => [
  teamId,
  factoryUid ?? null,
  kinds ?? null,
  before,
  count,
];

/** Reads notifications of a person, newest first. */
export const readOfPerson = async (
  db: Queryable,
  wanted: Wanted,
  userUid: string,
  isRead: boolean | undefined,
): Promise<NotificationRow[]> => await db.query(readOwn, [...valuesOf(wanted), userUid, isRead ?? null]);

/** Reads notifications of any member of the team, or of one member, newest first. */
export const readOfMembers = async (
  db: Queryable,
  wanted: Wanted,
  userUid: string | undefined,
): Promise<NotificationRow[]> => await db.query(readOfTeam, [...valuesOf(wanted), userUid ?? null]);

/** Reads a notification of the team. `is_read` is null if the person is not asked. */
export async function readNotification(
  db: Queryable,
  teamId: string,
  uid: string,
  userUid: string,
): Promise<NotificationRow | null> {
  return (await db.query(readOne, [teamId, uid, userUid]))[0] ?? null;
}

const countOwn = defineStatement({
  name: 'count_notifications_of_person',
  text: `
    SELECT count(*)::int AS total, count(*) FILTER (WHERE c.read_at IS NULL)::int AS unread FROM (
      SELECT o.read_at FROM inbox_recipients o JOIN inbox_items i ON i.uid = o.item_uid
      WHERE o.user_uid = $4 AND o.team_id = $1 AND o.dismissed_at IS NULL AND ${isWanted}
      LIMIT ${maxCountedNotifications}) c`,
  row: { total: integer, unread: integer },
});

/** Counts the notifications of a person. */
export async function countOfPerson(
  db: Queryable,
  { teamId, factoryUid, kinds }: Pick<Wanted, 'teamId' | 'factoryUid' | 'kinds'>,
  userUid: string,
): Promise<{ readonly total: number; readonly unread: number }> {
  const [counted] = await db.query(countOwn, [teamId, factoryUid ?? null, kinds ?? null, userUid]);
  return counted ?? { total: 0, unread: 0 };
}
