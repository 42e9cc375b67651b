import { randomUUIDv7 } from 'node:crypto';
import type { ApiKey, CreateKeyRequest, CreateKeyResponse } from '@runyard/contract/keys';
import { maxKeys } from '@runyard/contract/limits';
import type { Database, Queryable } from '../../store/database/database.ts';
import { teamHasRoom } from '../teams/has-room.ts';
import { keysChannel } from './directory.ts';
import type { Principal } from './principal.ts';
import { hashKey, newRawKey, shownParts } from './raw-key.ts';

interface KeyRow {
  id: string;
  name: string;
  kind: 'personal' | 'agent';
  prefix: string;
  last_four: string;
  agent_uid: string | null;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

const columns = 'id, name, kind, prefix, last_four, agent_uid, created_at, expires_at, last_used_at';

const toApiKey = (row: KeyRow): ApiKey => ({
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

/** Keys that the principal may see and delete: an administrator all of the team, others their own. */
const manageable = `team_id = $1 AND ($2 = 'admin' OR user_id = (SELECT id FROM users WHERE uid = $3))`;

const scopeOf = (principal: Principal) => [principal.teamId, principal.role, principal.creator.uid];

/** Oldest first. */
export async function listKeys(db: Queryable, principal: Principal): Promise<ApiKey[]> {
  const rows = await db.query<KeyRow>(
    `SELECT ${columns} FROM api_keys WHERE ${manageable} ORDER BY created_at, id`,
    scopeOf(principal),
  );
  return rows.map(toApiKey);
}

const lifetime = { '1d': '1 day', '30d': '30 days', '90d': '90 days', never: null } as const;

/**
 * Makes a key of the principal's team; the raw key is in the result only. A personal one is the principal's own. `too_many`:
 * the team has as many as it may have.
 */
export async function createKey(
  tx: Queryable,
  principal: Principal,
  request: CreateKeyRequest,
): Promise<CreateKeyResponse | 'too_many'> {
  if (!(await teamHasRoom(tx, principal.teamId, 'api_keys', maxKeys))) return 'too_many';
  const key = newRawKey();
  const { prefix, lastFour } = shownParts(key);
  const [row] = await tx.query<KeyRow>(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, agent_uid, prefix, last_four, expires_at)
     VALUES ($1, $2, $3, $4, $5, CASE WHEN $3 = 'personal' THEN (SELECT id FROM users WHERE uid = $6) END, $7, $8, $9,
       now() + $10::interval)
     RETURNING ${columns}`,
    [
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
    ],
  );
  if (!row) throw new Error('the key was not inserted');
  return { ...toApiKey(row), key };
}

/** False: no such key, or not the principal's to delete. It stops working in all processes as this commits. */
export async function deleteKey(db: Database, principal: Principal, keyId: string): Promise<boolean> {
  const rows = await db.query(
    `WITH gone AS (DELETE FROM api_keys WHERE ${manageable} AND id = $4 RETURNING id)
     SELECT pg_notify('${keysChannel}', id::text) FROM gone`,
    [...scopeOf(principal), keyId],
  );
  return rows.length > 0;
}
