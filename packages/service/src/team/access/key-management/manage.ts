import { randomUUIDv7 } from 'node:crypto';
import { maxKeys } from '@runyard/contract/limits';
import type { ApiKey, CreateKeyRequest, CreateKeyResponse, KeyKind } from '@runyard/contract/team/keys';
import { isAtLeast, type KeyLimit, type Role } from '@runyard/contract/wire/access';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { recordChange } from '../audit/record.ts';
import { hashKey, isSession, isValidKeyIn, keysChannel, newRawKey, shownParts } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';
import { lockRows, teamHasRoom } from '../teams/has-room.ts';

const lockIdentity = defineStatement({
  name: 'lock_agent_identity_for_key',
  // Locks the identity, so that `on_behalf_of_enabled` cannot change meanwhile, and so that the identity cannot be deleted meanwhile: a
  // delete of the identity deletes only the keys that it finds.
  text: 'SELECT on_behalf_of_enabled FROM agent_identities WHERE team_id = $1 AND uid = $2 FOR SHARE',
  row: { on_behalf_of_enabled: boolean },
});

/** Locks an identity until its new key is committed. Returns null if the team has no such identity. */
async function lockIdentityForKey(
  tx: Queryable,
  teamId: string,
  uid: string,
): Promise<{ readonly onBehalfOfEnabled: boolean } | null> {
  const [row] = await tx.query(lockIdentity, [teamId, uid]);
  return row ? { onBehalfOfEnabled: row.on_behalf_of_enabled } : null;
}

const columns = `id, name, kind, prefix, last_four, agent_uid, limited_to, created_by_uid, created_at, expires_at, last_used_at,
      (minted_by IS NOT NULL OR signed_on_by IS NOT NULL OR passkey_id IS NOT NULL) AS is_session, (SELECT u.uid FROM users u WHERE u.id = user_id) AS user_uid`;
const keyRow = {
  id: uuid,
  name: text(),
  kind: text<KeyKind>(),
  prefix: text(),
  last_four: text(),
  agent_uid: nullable(text()),
  limited_to: nullable(text<KeyLimit>()),
  created_by_uid: nullable(text()),
  created_at: timestamp,
  expires_at: nullable(timestamp),
  last_used_at: nullable(timestamp),
  is_session: boolean,
  user_uid: nullable(text()),
};

/**
 * SQL: the keys that a principal may see and delete. For administrators these are all keys of the team, for other people their own keys.
 */
const manageable = `k.team_id = $1 AND ($2::boolean OR k.user_id = (SELECT id FROM users WHERE uid = $3))`;

const scopeOf = ({ teamId, role, creator }: Principal) => [teamId, isAtLeast(role, 'admin'), creator.uid];

const listManageable = defineStatement({
  name: 'list_api_keys',
  text: `SELECT ${columns} FROM api_keys k WHERE ${manageable} ORDER BY created_at, id`,
  row: keyRow,
});

/** The statement locks the membership, so that the person cannot be removed meanwhile: the removal deletes only the keys that it finds. */
const insertPersonal = defineStatement({
  name: 'insert_personal_key',
  text: `
    WITH member AS (
      SELECT m.user_id FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = $4 AND u.uid = $5
      FOR KEY SHARE OF m)
    INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four, expires_at)
    SELECT $1, $2, 'personal', $3, $4, user_id, $6, $7, now() + $8::interval FROM member
    RETURNING ${columns}`,
  row: keyRow,
});

const insertWithoutPerson = defineStatement({
  name: 'insert_key_without_person',
  text: `
    INSERT INTO api_keys (id, hash, name, team_id, agent_uid, prefix, last_four, expires_at, created_by_uid, kind,
      limited_to)
    VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval, $9, $10, $11)
    RETURNING ${columns}`,
  row: keyRow,
});

const findManageable = defineStatement({
  name: 'find_api_key_to_delete',
  text: `
    SELECT m.role FROM api_keys k LEFT JOIN team_members m ON m.team_id = k.team_id AND m.user_id = k.user_id
    WHERE ${manageable} AND k.id = $4 FOR UPDATE OF k`,
  row: { role: nullable(text<Role>()) },
});

const deleteOne = defineStatement({
  name: 'delete_api_key',
  text: `
    WITH gone AS (DELETE FROM api_keys WHERE id = $1 RETURNING id, name, kind, agent_uid)
    -- The empty payload of the notice means that any key may have ended, because the browser sessions of the key end with it.
    SELECT name, kind, agent_uid, pg_notify('${keysChannel}', '') FROM gone`,
  row: { name: text(), kind: text<KeyKind>(), agent_uid: nullable(text()) },
});

const listMadeBy = defineStatement({
  name: 'list_keys_made_by',
  text: `SELECT ${columns} FROM api_keys WHERE team_id = $1 AND kind <> 'personal' AND created_by_uid = $2 ORDER BY created_at, id`,
  row: keyRow,
});

const toApiKey = (row: RowOf<typeof insertWithoutPerson>): ApiKey => ({
  uid: row.id,
  name: row.name,
  kind: row.kind,
  prefix: row.prefix,
  last_four: row.last_four,
  ...(row.user_uid ? { user_uid: row.user_uid } : {}),
  ...(row.agent_uid ? { agent_uid: row.agent_uid } : {}),
  ...(row.limited_to ? { limited_to: row.limited_to } : {}),
  ...(row.created_by_uid ? { created_by_uid: row.created_by_uid } : {}),
  created_at: row.created_at,
  ...(row.expires_at ? { expires_at: row.expires_at } : {}),
  ...(row.last_used_at ? { last_used_at: row.last_used_at } : {}),
  ...(row.is_session ? { is_session: true } : {}),
});

/** Returns the keys that the principal may see, oldest first. */
export async function listKeys(db: Queryable, principal: Principal): Promise<ApiKey[]> {
  const rows = await db.query(listManageable, scopeOf(principal));
  return rows.map((row) => ({
    ...toApiKey(row),
    ...(row.id === principal.keyId ? { is_current: true as const } : {}),
  }));
}

const lifetime = { '1d': '1 day', '30d': '30 days', '90d': '90 days', never: null } as const;

/** Inserts a personal key of a person of the team. Only the result contains the raw key. */
export async function insertPersonalKey(
  tx: Queryable,
  key: {
    readonly teamId: string;
    readonly userUid: string;
    readonly name: string;
    readonly expiresIn: CreateKeyRequest['expires_in'];
  },
): Promise<CreateKeyResponse> {
  return await insertWith(tx, insertPersonal, [key.name, key.teamId, key.userUid], key.expiresIn, []);
}

async function insertWith(
  tx: Queryable,
  statement: typeof insertWithoutPerson,
  [name, teamId, ownerUid]: readonly [name: string, teamId: string, ownerUid: string | null],
  expiresIn: CreateKeyRequest['expires_in'],
  more: readonly (string | null)[],
): Promise<CreateKeyResponse> {
  const key = newRawKey();
  const { prefix, lastFour } = shownParts(key);
  const values = [randomUUIDv7(), hashKey(key), name, teamId, ownerUid, prefix, lastFour, lifetime[expiresIn], ...more];
  const [row] = await tx.query(statement, values);
  if (!row) throw new Error('the key was not inserted');
  return { ...toApiKey(row), key };
}

/**
 * Reasons why a key is not created. `too_many` 409: the team has reached its limit of keys. `no_such_identity` 400: the team has no agent
 * identity with this uid. `owner_needed` 403: the identity acts for users, so only an owner may create its keys. `operator_needed` 403:
 * only the operator makes keys of this kind.
 */
export type KeyRefusal = 'too_many' | 'no_such_identity' | 'owner_needed' | 'operator_needed';

/** Creates a key of the principal's team; a personal key belongs to the principal. Only the result contains the raw key. */
export async function createKey(
  tx: Queryable,
  principal: Principal,
  request: CreateKeyRequest,
): Promise<CreateKeyResponse | KeyRefusal> {
  const { teamId, creator, role } = principal;
  const { name, kind, agent_uid: agentUid, limited_to: limitedTo, expires_in: expiresIn } = request;
  if (kind === 'worker' && !principal.isOperator) return 'operator_needed';
  if (agentUid !== undefined) {
    const identity = await lockIdentityForKey(tx, teamId, agentUid);
    if (!identity) return 'no_such_identity';
    if (identity.onBehalfOfEnabled && !isAtLeast(role, 'owner')) return 'owner_needed';
  }
  if (!(await teamHasRoom(tx, principal, 'api_keys', maxKeys))) return 'too_many';
  const made =
    kind === 'personal'
      ? await insertPersonalKey(tx, { teamId, userUid: creator.uid, name, expiresIn })
      : await insertWith(tx, insertWithoutPerson, [name, teamId, agentUid ?? null], expiresIn, [
          creator.uid,
          kind,
          limitedTo ?? null,
        ]);
  await recordChange(tx, principal, {
    action: 'key.create',
    subject: { type: 'key', uid: made.uid, name },
    after: {
      kind,
      ...(agentUid === undefined ? {} : { agent_uid: agentUid }),
      ...(limitedTo === undefined ? {} : { limited_to: limitedTo }),
      expires_at: made.expires_at ?? null,
    },
  });
  return made;
}

/**
 * Reasons why a key is not deleted. `not_found` 404. `above_own` 403: the key belongs to a person with a higher role. `last_key` 409:
 * without this key, no owner could manage the team.
 */
export type KeyDeleteRefusal = 'not_found' | 'above_own' | 'last_key';

/** SQL: the row `key` of `api_keys` is a personal key, not a browser session, with which its person can act in the team `$1`. */
const actsInTeam = (key: string): string =>
  `${key}.kind = 'personal' AND NOT ${isSession(key)} AND ${isValidKeyIn(key, '$1')}`;

const readIsLastKey = defineStatement({
  name: 'read_whether_key_is_last_of_owners',
  // A personal key works in all teams of its person. An owner who signs in with an identity provider could create a new key later. If the
  // provider is unavailable, the operator's key still works.
  text: `
    SELECT EXISTS (
      SELECT FROM api_keys k JOIN team_members m ON m.team_id = $1 AND m.user_id = k.user_id
      WHERE k.id = $2 AND (k.is_operator OR m.role = 'owner') AND ${actsInTeam('k')}
        AND NOT EXISTS (
          SELECT FROM team_members owner JOIN team_members home ON home.user_id = owner.user_id
            JOIN api_keys other ON other.team_id = home.team_id AND other.user_id = home.user_id
          WHERE owner.team_id = $1 AND owner.role = 'owner' AND other.id <> k.id AND ${actsInTeam('other')})
        AND (k.is_operator OR NOT EXISTS (
          SELECT FROM team_members owner JOIN sign_on_identities i ON i.user_id = owner.user_id
          WHERE owner.team_id = $1 AND owner.role = 'owner' AND i.confirmed_until > clock_timestamp()))) AS found`,
  row: { found: boolean },
});

/** Deletes a key, which stops working in all processes. */
export async function deleteKey(
  db: Database,
  principal: Principal,
  keyId: string,
): Promise<'deleted' | KeyDeleteRefusal> {
  return await db.transaction(async (tx) => {
    // Take the lock before the rows are read. So the later of two concurrent deletes sees which keys are left after the earlier delete,
    // and no role changes meanwhile.
    await lockRows(tx, principal.teamId, 'team_members');
    const [found] = await tx.query(findManageable, [...scopeOf(principal), keyId]);
    if (!found) return 'not_found';
    if (found.role !== null && !isAtLeast(principal.role, found.role)) return 'above_own';
    const [last] = await tx.query(readIsLastKey, [principal.teamId, keyId]);
    if (last?.found) return 'last_key';
    await deleteKeys(tx, principal, [keyId]);
    return 'deleted';
  });
}

/** Deletes keys that the caller may delete, and records each delete in the audit log. */
async function deleteKeys(tx: Queryable, by: Principal, keyIds: readonly string[]): Promise<void> {
  for (const keyId of keyIds) {
    const [gone] = await tx.query(deleteOne, [keyId]);
    if (!gone) continue;
    await recordChange(tx, by, {
      action: 'key.delete',
      subject: { type: 'key', uid: keyId, name: gone.name },
      before: { kind: gone.kind, ...(gone.agent_uid ? { agent_uid: gone.agent_uid } : {}) },
      endsAccess: true,
    });
  }
}

/** Returns the agent and worker keys of the team that a person created, oldest first. If `isEnded` is true, also deletes them. */
export async function endKeysMadeBy(
  tx: Queryable,
  by: Principal,
  userUid: string,
  isEnded: boolean,
): Promise<ApiKey[]> {
  const rows = await tx.query(listMadeBy, [by.teamId, userUid]);
  if (isEnded)
    await deleteKeys(
      tx,
      by,
      rows.map(({ id }) => id),
    );
  return rows.map(toApiKey);
}
