/** Writes the audit log. Every domain records its changes with `recordChange`. */
import { randomUUIDv7 } from 'node:crypto';
import { maxChangesPerDay } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import type { Principal } from '../keys/principal.ts';

/** The author of a change: a person or an agent, and the request that asked for the change. A `Principal` is one. */
export interface Author extends Pick<Principal, 'teamId' | 'from'> {
  readonly creator: Pick<Principal['creator'], 'kind' | 'uid'>;
  readonly keyId: string | null;
}

/** Members of a thing by name, without secrets. */
export type State = Readonly<Record<string, unknown>>;

/** A change of a resource. */
export interface Change {
  /** Kind of the thing and a verb, such as `member.update`. */
  readonly action: `${string}.${string}`;
  /** `name`: the name of the thing at that time, for people. */
  readonly subject: { readonly type: string; readonly uid: string; readonly name?: string | null | undefined };
  /** The thing before the change; absent: it is new. */
  readonly before?: State;
  /** The thing after the change; absent: it is gone. */
  readonly after?: State;
  /**
   * True if the change takes access away or deletes something. Such a change is allowed above the team's limit of the
   * day, because the thing that it ends was counted when it was created.
   */
  readonly endsAccess?: true;
}

/**
 * The team has made all changes that it may make today (UTC). The caller must roll the transaction back; the answer is
 * 429.
 */
export class TooManyChanges extends Error {
  constructor() {
    super(`the team has made ${maxChangesPerDay} changes today`);
  }
}

const insert = defineStatement({
  name: 'insert_audit_entry',
  // Guards the limit of the day: the row of the day is locked until the transaction ends.
  text: `
    WITH counted AS (
      INSERT INTO audit_days AS d (team_id, day, entries) VALUES ($2, (clock_timestamp() AT TIME ZONE 'UTC')::date, 1)
      ON CONFLICT (team_id, day) DO UPDATE SET entries = d.entries + 1 WHERE d.entries < ${maxChangesPerDay} OR $15
      RETURNING 1)
    INSERT INTO audit_entries (id, team_id, actor_kind, actor_uid, action, subject_type, subject_uid, subject_name,
      before, after, address, user_agent, request_id, key_id)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::jsonb, $11, $12, $13, $14::uuid FROM counted RETURNING id`,
  row: { id: uuid },
});

const maxStateLength = 8 * 1024;
/** Raw keys, invitation keys and signing secrets. Callers pass none; removing them here is a second protection. */
const secretText = /(ry[ki]|whsec)_[\w+/=-]{16,}/g;

/** Returns the state as JSON without secrets; a state that is too long becomes its size. */
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
 * Writes a change to the audit log of the author's team. Call it in the transaction that makes the change, as its last statement:
 * it locks the count of the day. With `before` and `after`, only the members that differ are written.
 * @throws TooManyChanges
 */
export async function recordChange(tx: Queryable, by: Author, change: Change): Promise<void> {
  const { subject, before, after } = change;
  const states = before && after ? differences(before, after) : { before, after };
  const rows = await tx.query(insert, [
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
    change.endsAccess ?? false,
  ]);
  if (rows.length === 0) throw new TooManyChanges();
}
