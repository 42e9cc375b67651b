/** Writes the audit log. Every domain records its changes with `recordChange`. */
import { randomUUIDv7 } from 'node:crypto';
import { maxChangesOfAuthorPerDay, maxChangesPerDay } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, uuid } from '../../../platform/store/database/statement.ts';
import type { Principal } from '../keys/principal.ts';

/** The person or agent who makes a change, with the request that asks for the change. A `Principal` can be used as an author. */
export interface Author extends Pick<Principal, 'teamId' | 'from'> {
  readonly creator: Pick<Principal['creator'], 'kind' | 'uid'> & Partial<Pick<Principal['creator'], 'displayName'>>;
  readonly keyId: string | null;
}

/** Members of a resource by name, without secrets. */
export type State = Readonly<Record<string, unknown>>;

/** A change of a resource. */
export interface Change {
  /** Kind of the resource and a verb, such as `member.update`. */
  readonly action: `${string}.${string}`;
  /** `name`: the name of the resource at the time of the change, for people. */
  readonly subject: { readonly type: string; readonly uid: string; readonly name?: string | null | undefined };
  /** The resource before the change; absent: the change created it. */
  readonly before?: State;
  /** The resource after the change; absent: the change deleted it. */
  readonly after?: State;
  /**
   * True if the change takes access away or deletes a resource. Such a change is allowed even above the team's daily limit, because the
   * creation of the resource was already counted.
   */
  readonly endsAccess?: true;
}

/**
 * Thrown if the author has reached the limit of changes for this day (UTC), or if all members of the team except its owners have together
 * reached theirs. The caller must roll the transaction back; the answer is 429.
 */
export class TooManyChanges extends Error {
  constructor() {
    super(
      `one person or agent has made ${maxChangesOfAuthorPerDay} changes today, or the team without its owners ${maxChangesPerDay}`,
    );
  }
}

const insertEntry = `
    INSERT INTO audit_entries (id, team_id, actor_kind, actor_uid, action, subject_type, subject_uid, subject_name,
      before, after, address, user_agent, request_id, key_id)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::jsonb, $11, $12, $13, $14::uuid`;

const insert = defineStatement({
  name: 'insert_audit_entry',
  // Enforces the daily limits. Locks the rows that count the changes of this day, beginning with the row of the author. The locks end
  // with the transaction. For an owner, changes of other members do not count.
  text: `
    WITH day AS (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS today),
    of_author AS (
      INSERT INTO audit_days AS d (team_id, day, author, entries) SELECT $2, today, $3::text || ' ' || $4::text, 1 FROM day
      ON CONFLICT (team_id, day, author) DO UPDATE SET entries = d.entries + 1
        WHERE d.entries < ${maxChangesOfAuthorPerDay} OR $15
      RETURNING d.day),
    counted AS (
      INSERT INTO audit_days AS d (team_id, day, author, entries) SELECT $2, day, '', 1 FROM of_author
      ON CONFLICT (team_id, day, author) DO UPDATE SET entries = d.entries + 1 WHERE d.entries < ${maxChangesPerDay} OR $15
        OR EXISTS (SELECT FROM team_members m JOIN users u ON u.id = m.user_id
          WHERE $3 = 'user' AND m.team_id = $2 AND u.uid = $4 AND m.role = 'owner')
      RETURNING 1)
    ${insertEntry} FROM counted RETURNING id`,
  row: { id: uuid },
});

const insertAction = defineStatement({
  name: 'insert_audit_entry_of_action',
  text: `${insertEntry}`,
  row: {},
});

const maxStateLength = 8 * 1024;
/** Matches raw keys, invitation keys and signing secrets. Callers do not pass such values; removing them here is a second protection. */
const secretText = /(ry[ki]|whsec)_[\w+/=-]{16,}/g;

/** Returns the state as JSON without secrets; if the state is too long, returns its size instead. */
function stateText(state: State | undefined): string | null {
  if (state === undefined) return null;
  const text = JSON.stringify(state).replaceAll(secretText, '[removed]');
  return text.length <= maxStateLength ? text : JSON.stringify({ too_long: `${text.length} characters` });
}

/** Returns the members that differ between two states. */
export function differences(before: State, after: State): { readonly before: State; readonly after: State } {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  const only = (state: State) => Object.fromEntries(changed.map((name) => [name, state[name] ?? null]));
  return { before: only(before), after: only(after) };
}

/**
 * Writes a change to the audit log of the author's team. Call this function at the end of the transaction that makes the change, because it
 * locks the counts of the day. With `before` and `after`, only the members that differ are written.
 * @throws TooManyChanges
 */
export async function recordChange(tx: Queryable, by: Author, change: Change): Promise<void> {
  const rows = await tx.query(insert, [...entryValues(by, change), change.endsAccess ?? false]);
  if (rows.length === 0) throw new TooManyChanges();
}

/**
 * Writes an action that changes no resource, such as a follow-up or a sign-in, to the audit log of the author's team. Such actions need no
 * limit and no lock here, because they have limits elsewhere.
 */
export async function recordAction(tx: Queryable, by: Author, action: Omit<Change, 'endsAccess'>): Promise<void> {
  await tx.query(insertAction, entryValues(by, action));
}

function entryValues(by: Author, change: Omit<Change, 'endsAccess'>): unknown[] {
  const { subject, before, after } = change;
  const states = before && after ? differences(before, after) : { before, after };
  return [
    randomUUIDv7(),
    by.teamId,
    by.creator.kind,
    by.creator.uid,
    change.action,
    subject.type,
    subject.uid,
    subject.name?.replaceAll(secretText, '[removed]').slice(0, 200) ?? null,
    stateText(states.before),
    stateText(states.after),
    by.from?.address ?? null,
    by.from?.userAgent?.slice(0, 300) ?? null,
    by.from?.requestId ?? null,
    by.keyId,
  ];
}

/** SQL: columns of the rows that `creationEntryOf` returns, for `jsonb_to_recordset`. */
export const creationEntryColumns =
  'audit_id uuid, audit_key_id uuid, audit_address text, audit_user_agent text, audit_request_id text';

/** Returns the members of an input row that describe the run's entry in the audit log; no members if no key created the run. */
export function creationEntryOf(by: Pick<Author, 'keyId' | 'from'> | undefined) {
  if (by === undefined || by.keyId === null) return {};
  return {
    audit_id: randomUUIDv7(),
    audit_key_id: by.keyId,
    audit_address: by.from?.address,
    audit_user_agent: by.from?.userAgent?.slice(0, 300),
    audit_request_id: by.from?.requestId,
  };
}

/**
 * SQL: writes the entries of runs that keys created. It is a part of the statement that writes the runs, so creating a run needs no second
 * statement. These entries do not count for the limits of the audit log, because runs have separate limits.
 */
export const insertCreationEntries = (input: string): string => `
      INSERT INTO audit_entries (id, team_id, actor_kind, actor_uid, action, subject_type, subject_uid, address, user_agent, request_id, key_id)
      SELECT audit_id, team_id, creator_kind, creator_uid, 'run.create', 'run', id::text, audit_address, audit_user_agent, audit_request_id,
        audit_key_id FROM ${input} WHERE audit_id IS NOT NULL`;

const batchSize = 5_000;

const deleteOld = defineStatement({
  name: 'delete_old_audit_entries',
  text: `
    WITH gone AS (
      DELETE FROM audit_entries WHERE id IN (
        SELECT id FROM audit_entries WHERE occurred_at < now() - $1 * interval '1 day' ORDER BY occurred_at LIMIT ${batchSize})
      RETURNING 1)
    SELECT count(*)::integer AS rows FROM gone`,
  row: { rows: integer },
});

/**
 * Deletes a batch of entries that are at least `days` days old; if `days` is 0, deletes none. `more` is true if further old entries may be
 * left.
 */
export async function deleteOldChanges(db: Queryable, days: number): Promise<{ rows: number; more: boolean }> {
  if (days === 0) return { rows: 0, more: false };
  const [deleted] = await db.query(deleteOld, [days]);
  const rows = deleted?.rows ?? 0;
  return { rows, more: rows === batchSize };
}
