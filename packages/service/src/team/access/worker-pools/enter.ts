import { maxWorkerPools } from '@runyard/contract/limits';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, text } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../actor.ts';
import { type Author, recordChange } from '../audit/record.ts';
import { mayConnectToPool } from '../keys/key.ts';
import { readProfiles } from '../profiles.ts';
import { teamHasRoom } from '../teams/has-room.ts';

/** The owner of the key with which a worker connects. */
export type PoolCaller = Author & { readonly keyId: string };

/**
 * `not_allowed`: the pool belongs to another owner, who has not added the owner of the key. `too_many`: the team already has its maximum
 * number of pools.
 */
export type PoolEntry =
  | { readonly kind: 'entered' }
  | { readonly kind: 'not_allowed'; readonly owner: string }
  | { readonly kind: 'too_many' };

const readEntry = defineStatement({
  name: 'read_entry_of_worker_pool',
  text: `
    SELECT p.owner_kind, p.owner_uid, ${mayConnectToPool('k', 'p.team_id', 'p.name')} AS "mayConnect"
    FROM worker_pools p JOIN api_keys k ON k.id = $3 WHERE p.team_id = $1 AND p.name = $2`,
  row: { owner_kind: text<RunActor['kind']>(), owner_uid: text(), mayConnect: boolean },
});

const insert = defineStatement({
  name: 'insert_worker_pool',
  text: `
    INSERT INTO worker_pools (team_id, name, owner_kind, owner_uid) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING RETURNING name`,
  row: { name: text() },
});

async function findEntry(db: Queryable, { teamId, keyId }: PoolCaller, name: string): Promise<PoolEntry | null> {
  const [found] = await db.query(readEntry, [teamId, name, keyId]);
  if (!found) return null;
  if (found.mayConnect) return { kind: 'entered' };
  const owner = { kind: found.owner_kind, uid: found.owner_uid };
  const profileOf = await readProfiles(db, teamId, [owner]);
  return { kind: 'not_allowed', owner: profileOf(owner).display_name ?? owner.uid };
}

/**
 * Decides whether a worker may connect to the pool with this name, with the caller's key. The first connection makes the caller the owner
 * of the pool. Throws `TooManyChanges`.
 */
export async function enterPool(db: Database, caller: PoolCaller, name: string): Promise<PoolEntry> {
  const known = await findEntry(db, caller, name);
  if (known) return known;
  const { teamId, creator } = caller;
  return await db.transaction(async (tx) => {
    if (!(await teamHasRoom(tx, caller, 'worker_pools', maxWorkerPools))) return { kind: 'too_many' };
    const [made] = await tx.query(insert, [teamId, name, creator.kind, creator.uid]);
    // Another connection has created the pool meanwhile.
    if (!made) return (await findEntry(tx, caller, name)) ?? { kind: 'too_many' };
    const subject = { type: 'worker_pool', uid: name, name };
    await recordChange(tx, caller, { action: 'worker_pool.create', subject, after: { owner: creator.uid } });
    return { kind: 'entered' };
  });
}
