/** Test support: keys and worker pools that exist only as rows of the database. */
import { randomUUIDv7 } from 'node:crypto';
import type { Queryable } from '../src/platform/store/database/database.ts';
import { hashKey, newRawKey } from '../src/team/access/keys/key.ts';

/** Inserts a key of the team with which a worker connects. Returns the id of the key. */
export async function insertWorkerKey(db: Queryable, teamId: string, isOperator = true): Promise<string> {
  const id = randomUUIDv7();
  await db.query(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, agent_uid, is_operator, prefix, last_four)
     VALUES ($1, $2, 'agent', 'a worker', $3, 'a-worker', $4, '', '')`,
    [id, hashKey(newRawKey()), teamId, isOperator],
  );
  return id;
}

/** Creates a pool of workers with this name. Its owner is the service account of the key that `insertWorkerKey` inserts. */
export async function insertWorkerPool(db: Queryable, teamId: string, name: string): Promise<void> {
  await db.query(
    `INSERT INTO worker_pools (team_id, name, owner_kind, owner_uid) VALUES ($1, $2, 'service_account', 'a-worker')
     ON CONFLICT DO NOTHING`,
    [teamId, name],
  );
}

/** Allows the owner of a personal key to connect workers to a pool. If the pool does not exist, creates it with this person as its owner. */
export async function joinWorkerPool(db: Queryable, name: string, rawKey: string): Promise<void> {
  await db.query(
    `WITH person AS (
       SELECT k.team_id, u.uid FROM api_keys k JOIN users u ON u.id = k.user_id WHERE k.hash = $2
     ), made AS (
       INSERT INTO worker_pools (team_id, name, owner_kind, owner_uid) SELECT team_id, $1, 'user', uid FROM person
       ON CONFLICT DO NOTHING RETURNING name)
     INSERT INTO worker_pool_connectors (team_id, pool, kind, uid, added_by_uid)
     SELECT team_id, $1, 'user', uid, uid FROM person ON CONFLICT DO NOTHING`,
    [name, hashKey(rawKey)],
  );
}
