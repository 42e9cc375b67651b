import type { AuditEntry, ListAuditEntriesQuery, ListAuditEntriesResponse } from '@runyard/contract/team/audit';
import { type CursorSigner, readPage } from '../../../platform/store/cursor.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  defineStatement,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../actor.ts';
import { readProfiles } from '../profiles.ts';

const readEntries = defineStatement({
  name: 'read_audit_entries',
  text: `
    SELECT id, position::text AS place, occurred_at, actor_kind AS kind, actor_uid AS uid, action, subject_type,
      subject_uid, subject_name, before, after, address, user_agent, request_id, key_id
    FROM audit_entries
    WHERE team_id = $1 AND position < coalesce($2, 9223372036854775807) AND ($3::text IS NULL OR actor_uid = $3)
      AND ($4::text IS NULL OR action = $4) AND ($5::text IS NULL OR subject_type = $5)
      AND ($6::text IS NULL OR subject_uid = $6) AND ($7::timestamptz IS NULL OR occurred_at >= $7)
      AND ($8::timestamptz IS NULL OR occurred_at < $8)
    ORDER BY position DESC LIMIT $9`,
  row: {
    id: uuid,
    place: text(),
    occurred_at: timestamp,
    kind: text<RunActor['kind']>(),
    uid: text(),
    action: text(),
    subject_type: text(),
    subject_uid: text(),
    subject_name: nullable(text()),
    before: nullable(json<Record<string, unknown>>()),
    after: nullable(json<Record<string, unknown>>()),
    address: nullable(text()),
    user_agent: nullable(text()),
    request_id: nullable(text()),
    key_id: nullable(uuid),
  },
});

type EntryRow = RowOf<typeof readEntries>;

const toEntry = (row: EntryRow, actor: AuditEntry['actor']): AuditEntry => ({
  id: row.id,
  occurred_at: row.occurred_at,
  actor,
  action: row.action,
  subject: {
    type: row.subject_type,
    uid: row.subject_uid,
    ...(row.subject_name === null ? {} : { name: row.subject_name }),
  },
  ...(row.before ? { before: row.before } : {}),
  ...(row.after ? { after: row.after } : {}),
  origin: {
    ...(row.address === null ? {} : { address: row.address }),
    ...(row.user_agent === null ? {} : { user_agent: row.user_agent }),
    ...(row.request_id === null ? {} : { request_id: row.request_id }),
    ...(row.key_id === null ? {} : { key_uid: row.key_id }),
  },
});

/** Returns one page of the changes of a team, newest first. Returns null if the cursor was made for another list. */
export async function listChanges(
  db: Queryable,
  signer: CursorSigner,
  teamId: string,
  query: ListAuditEntriesQuery,
): Promise<ListAuditEntriesResponse | null> {
  const { actor, action, subject_type, subject_uid, since, until } = query;
  const wanted = [actor, action, subject_type, subject_uid, since, until].map((filter) => filter ?? null);
  const found = await readPage(signer, query, {
    list: ['audit entries', teamId, wanted],
    read: (after, count) => db.query(readEntries, [teamId, after?.id ?? null, ...wanted, count]),
    positionOf: ({ place }) => ({ value: null, id: place }),
  });
  if (!found) return null;
  const { page, page_info } = found;
  const profileOf = await readProfiles(db, teamId, page);
  return { entries: page.map((row) => toEntry(row, profileOf(row))), page_info };
}
