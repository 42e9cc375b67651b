import { randomUUIDv7 } from 'node:crypto';
import { isAtLeast } from '@runyard/contract/access';
import type { ApiKey, CreateKeyRequest, CreateKeyResponse } from '@runyard/contract/keys';
import { maxKeys } from '@runyard/contract/limits';
import type { Database, Queryable } from '../../store/database/database.ts';
import { defineStatement, nullable, type RowOf, text, timestamp, uuid } from '../../store/database/statement.ts';
import { teamHasRoom } from '../teams/has-room.ts';
import { keysChannel } from './directory.ts';
import type { Principal } from './principal.ts';
import { hashKey, newRawKey, shownParts } from './raw-key.ts';

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

const insertKey = defineStatement({
  name: 'insert_api_key',
  text: `
    INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, agent_uid, prefix, last_four, expires_at)
    VALUES ($1, $2, $3, $4, $5, CASE WHEN $3 = 'personal' THEN (SELECT id FROM users WHERE uid = $6) END, $7, $8, $9,
      now() + $10::interval)
    RETURNING ${columns}`,
  row: keyRow,
});

const deleteManageable = defineStatement({
  name: 'delete_api_key',
  text: `
    WITH gone AS (DELETE FROM api_keys WHERE ${manageable} AND id = $4 RETURNING id)
    -- Empty: of any key, because the browser sessions of the key end with it.
    SELECT pg_notify('${keysChannel}', '') FROM gone`,
  row: {},
});

const toApiKey = (row: RowOf<typeof insertKey>): ApiKey => ({
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

/**
 * Creates a key of the principal's team; a personal key belongs to the principal. Only the result holds the raw key.
 * `too_many`: the team has as many keys as it may have.
 */
export async function createKey(
  tx: Queryable,
  principal: Principal,
  request: CreateKeyRequest,
): Promise<CreateKeyResponse | 'too_many'> {
  if (!(await teamHasRoom(tx, principal.teamId, 'api_keys', maxKeys))) return 'too_many';
  const key = newRawKey();
  const { prefix, lastFour } = shownParts(key);
  const [row] = await tx.query(insertKey, [
    randomUUIDv7(),
    hashKey(key),
    request.kind,
    request.name,
    principal.teamId,
    principal.creator.uid,
    request.agent_uid ?? null,
    prefix,
    lastFour,
    lifetime[request.expires_in],
  ]);
  if (!row) throw new Error('the key was not inserted');
  return { ...toApiKey(row), key };
}

/** Deletes a key, which stops working in all processes. False: there is no such key, or the principal may not delete it. */
export async function deleteKey(db: Database, principal: Principal, keyId: string): Promise<boolean> {
  const rows = await db.query(deleteManageable, [...scopeOf(principal), keyId]);
  return rows.length > 0;
}
