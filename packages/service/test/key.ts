/** Test support: keys that exist only as rows. */
import { randomUUIDv7 } from 'node:crypto';
import type { Queryable } from '../src/platform/store/database/database.ts';
import { hashKey, newRawKey } from '../src/team/access/keys/raw-key.ts';

/** Inserts a key of the team that a worker connects with; returns its id. */
export async function insertWorkerKey(db: Queryable, teamId: string, isOperator = true): Promise<string> {
  const id = randomUUIDv7();
  await db.query(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, agent_uid, is_operator, prefix, last_four)
     VALUES ($1, $2, 'agent', 'a worker', $3, 'a-worker', $4, '', '')`,
    [id, hashKey(newRawKey()), teamId, isOperator],
  );
  return id;
}
