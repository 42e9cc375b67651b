import { randomUUIDv7 } from 'node:crypto';
import { isAtLeast } from '@runyard/contract/access';
import type { ApiKey, CreateKeyRequest, CreateKeyResponse } from '@runyard/contract/keys';
import { maxKeys } from '@runyard/contract/limits';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { recordChange } from '../audit/record.ts';
import { lockIdentityForKey } from '../identities/lock.ts';
import { keysChannel } from '../keys/channel.ts';
import type { Principal } from '../keys/principal.ts';
import { hashKey, newRawKey, shownParts } from '../keys/raw-key.ts';
import { teamHasRoom } from '../teams/has-room.ts';

const columns = 'id, name, kind, prefix, last_four, agent_uid, created_at, expires_at, last_used_at';
const keyRow = {
  id: uuid,
  name: text(),
  kind: text<'personal' | 'agent'>(),
  prefix: text(),
  last_four: text(),
  agent_uid: nullable(text()),
  created_at: timestamp,
  expires_at: nullable(timestamp),
  last_used_at: nullable(timestamp),
};

/** SQL: the keys that a principal may see and delete: administrators all of the team, others their own. */
const manageable = `team_id = $1 AND ($2::boolean OR user_id = (SELECT id FROM users WHERE uid = $3))`;

const scopeOf = ({ teamId, role, creator }: Principal) => [teamId, isAtLeast(role, 'admin'), creator.uid];

const listManageable = defineStatement({
  name: 'list_api_keys',
  text: `SELECT ${columns} FROM api_keys WHERE ${manageable} ORDER BY created_at, id`,
  row: keyRow,
});

/** The lock orders this against the removal of the person, which deletes the keys that it finds. */
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

const insertAgent = defineStatement({
  name: 'insert_agent_key',
  text: `
    INSERT INTO api_keys (id, hash, kind, name, team_id, agent_uid, prefix, last_four, expires_at)
    VALUES ($1, $2, 'agent', $3, $4, $5, $6, $7, now() + $8::interval)
    RETURNING ${columns}`,
  row: keyRow,
});

const deleteManageable = defineStatement({
  name: 'delete_api_key',
  text: `
    WITH gone AS (DELETE FROM api_keys WHERE ${manageable} AND id = $4 RETURNING id, name, kind, agent_uid)
    -- Empty: of any key, because the browser sessions of the key end with it.
    SELECT name, kind, agent_uid, pg_notify('${keysChannel}', '') FROM gone`,
  row: { name: text(), kind: text<'personal' | 'agent'>(), agent_uid: nullable(text()) },
});

const toApiKey = (row: RowOf<typeof insertAgent>): ApiKey => ({
  uid: row.id,
  name: row.name,
  kind: row.kind,
  prefix: row.prefix,
  last_four: row.last_four,
  ...(row.agent_uid ? { agent_uid: row.agent_uid } : {}),
  created_at: row.created_at,
  ...(row.expires_at ? { expires_at: row.expires_at } : {}),
  ...(row.last_used_at ? { last_used_at: row.last_used_at } : {}),
});

/** Returns the keys that the principal may see, oldest first. */
export async function listKeys(db: Queryable, principal: Principal): Promise<ApiKey[]> {
  const rows = await db.query(listManageable, scopeOf(principal));
  return rows.map(toApiKey);
}

const lifetime = { '1d': '1 day', '30d': '30 days', '90d': '90 days', never: null } as const;

/** Inserts a personal key of a person of the team. Only the result holds the raw key. */
export async function insertPersonalKey(
  tx: Queryable,
  key: {
    readonly teamId: string;
    readonly userUid: string;
    readonly name: string;
    readonly expiresIn: CreateKeyRequest['expires_in'];
  },
): Promise<CreateKeyResponse> {
  return await insertWith(tx, insertPersonal, key.name, key.teamId, key.userUid, key.expiresIn);
}

async function insertWith(
  tx: Queryable,
  statement: typeof insertAgent,
  name: string,
  teamId: string,
  ownerUid: string | null,
  expiresIn: CreateKeyRequest['expires_in'],
): Promise<CreateKeyResponse> {
  const key = newRawKey();
  const { prefix, lastFour } = shownParts(key);
  const values = [randomUUIDv7(), hashKey(key), name, teamId, ownerUid, prefix, lastFour, lifetime[expiresIn]];
  const [row] = await tx.query(statement, values);
  if (!row) throw new Error('the key was not inserted');
  return { ...toApiKey(row), key };
}

/**
 * Why a key is not created. `too_many` 409: the team has as many keys as it may have. `no_such_identity` 400: the team has no agent
 * identity of this uid. `owner_needed` 403: the identity acts for users.
 */
export type KeyRefusal = 'too_many' | 'no_such_identity' | 'owner_needed';

/** Creates a key of the principal's team; a personal key belongs to the principal. Only the result holds the raw key. */
export async function createKey(
  tx: Queryable,
  principal: Principal,
  request: CreateKeyRequest,
): Promise<CreateKeyResponse | KeyRefusal> {
  const { teamId, creator, role } = principal;
  const { name, kind, agent_uid: agentUid, expires_in: expiresIn } = request;
  if (agentUid !== undefined) {
    const identity = await lockIdentityForKey(tx, teamId, agentUid);
    if (!identity) return 'no_such_identity';
    if (identity.onBehalfOfEnabled && !isAtLeast(role, 'owner')) return 'owner_needed';
  }
  if (!(await teamHasRoom(tx, teamId, 'api_keys', maxKeys))) return 'too_many';
  const made =
    kind === 'personal'
      ? await insertPersonalKey(tx, { teamId, userUid: creator.uid, name, expiresIn })
      : await insertWith(tx, insertAgent, name, teamId, agentUid ?? null, expiresIn);
  await recordChange(tx, principal, {
    action: 'key.create',
    subject: { type: 'key', uid: made.uid, name },
    after: { kind, ...(agentUid === undefined ? {} : { agent_uid: agentUid }), expires_at: made.expires_at ?? null },
  });
  return made;
}

/** Deletes a key, which stops working in all processes. False: there is no such key, or the principal may not delete it. */
export async function deleteKey(db: Database, principal: Principal, keyId: string): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [gone] = await tx.query(deleteManageable, [...scopeOf(principal), keyId]);
    if (!gone) return false;
    await recordChange(tx, principal, {
      action: 'key.delete',
      subject: { type: 'key', uid: keyId, name: gone.name },
      before: { kind: gone.kind, ...(gone.agent_uid ? { agent_uid: gone.agent_uid } : {}) },
      endsAccess: true,
    });
    return true;
  });
}
