/** Stores the pools of self-hosted workers of a team, and the rights to connect to these pools. */
import { maxPoolConnectors } from '@runyard/contract/limits';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { WorkerPool } from '@runyard/contract/workers/worker-pools';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  json,
  type RowOf,
  text,
  timestamp,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../actor.ts';
import { recordChange } from '../audit/record.ts';
import { keysChannel } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';
import { readProfiles } from '../profiles.ts';

/**
 * Returns the UID of a pool. A pool is treated like stored content that its runs execute, because the machines of the pool see all data
 * of these runs. The service's own pool has no UID.
 */
export const uidOfPool = (teamId: string, name: string): string => `${name}@${teamId}`;

/** Returns the name of the pool from its UID. Names contain no `@`. */
export const nameOfPool = (uid: string): string => uid.slice(0, uid.indexOf('@'));

/**
 * SQL: the authors who changed the pool of the run after the run was created, as an array with one content for each author; NULL if there are
 * none. Such an author has created the pool, has created it again after a delete, or has added connectors. Left out are the run's executor and
 * all changes after the assignment. `run` and `execution` are names of rows of `runs` and `executions`; `q` is the row of `run_requests`.
 */
export const unexpectedPool = (run: string, execution: string): string => `(
  SELECT jsonb_agg(jsonb_build_object('kind', 'worker_pool', 'uid', p.uid, 'revision', p.revision, 'author', w.author, 'accepted', false))
  FROM (
    SELECT c.uid, c.revision, c.texts FROM content_revisions c
    WHERE c.kind = 'worker_pool' AND c.uid = ${run}.worker_host || '@' || ${run}.team_id
      AND c.created_at <= coalesce(${execution}.assigned_at, clock_timestamp())
    ORDER BY c.revision DESC LIMIT 1
  ) p
  CROSS JOIN LATERAL (
    SELECT DISTINCT a.author FROM texts_that_differ(p.texts, (
      SELECT b.texts FROM jsonb_array_elements(q.contents) e
      JOIN content_revisions b ON b.kind = 'worker_pool' AND b.uid = p.uid AND b.revision = (e->>'revision')::integer
      WHERE e->>'kind' = 'worker_pool' AND e->>'uid' = p.uid LIMIT 1)) t
    CROSS JOIN LATERAL jsonb_array_elements(t.authors) AS a (author)
    WHERE a.author <> jsonb_build_object('kind', ${run}.executor_kind, 'uid', ${run}.executor_uid)
  ) w)`;

interface Connector extends RunActor {
  readonly added_by: string;
  readonly added_at: string;
}

const select = `
  SELECT p.name, p.owner_kind, p.owner_uid, p.created_at,
    coalesce((SELECT jsonb_agg(jsonb_build_object('kind', c.kind, 'uid', c.uid, 'added_by', c.added_by_uid,
        'added_at', to_char(c.added_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY c.added_at, c.uid)
      FROM worker_pool_connectors c WHERE c.team_id = p.team_id AND c.pool = p.name), '[]') AS connectors
  FROM worker_pools p WHERE p.team_id = $1`;
const row = {
  name: text(),
  owner_kind: text<RunActor['kind']>(),
  owner_uid: text(),
  created_at: timestamp,
  connectors: json<readonly Connector[]>(),
};

const readAll = defineStatement({
  name: 'read_worker_pools',
  text: `${select} ORDER BY p.name COLLATE "C"`,
  row,
});

const readOne = defineStatement({ name: 'read_worker_pool', text: `${select} AND p.name = $2`, row });

const lockPool = defineStatement({
  name: 'lock_worker_pool',
  text: 'SELECT owner_kind, owner_uid FROM worker_pools WHERE team_id = $1 AND name = $2 FOR UPDATE',
  row: { owner_kind: text<RunActor['kind']>(), owner_uid: text() },
});

/** Finds who has the UID: an agent identity, an agent key without an identity, or a person who may run workers. */
const findConnector = defineStatement({
  name: 'find_connector_of_worker_pool',
  text: `
    SELECT 'user' AS kind FROM team_members m JOIN users u ON u.id = m.user_id
    WHERE m.team_id = $1 AND u.uid = $2 AND m.role <> 'viewer'
    UNION ALL SELECT 'service_account' FROM agent_identities WHERE team_id = $1 AND uid = $2
    UNION ALL SELECT 'service_account' FROM api_keys WHERE team_id = $1 AND kind = 'agent' AND agent_uid IS NULL AND id::text = $2`,
  row: { kind: text<RunActor['kind']>() },
});

const insertConnector = defineStatement({
  name: 'insert_connector_of_worker_pool',
  text: `
    INSERT INTO worker_pool_connectors (team_id, pool, kind, uid, added_by_uid, added_by_kind)
    SELECT $1, $2, $3, $4, $5, $6
    WHERE (SELECT count(*) FROM worker_pool_connectors WHERE team_id = $1 AND pool = $2) < ${maxPoolConnectors}
      OR EXISTS (SELECT FROM worker_pool_connectors WHERE team_id = $1 AND pool = $2 AND uid = $4)
    ON CONFLICT (team_id, pool, uid) DO UPDATE SET added_by_uid = worker_pool_connectors.added_by_uid
    RETURNING xmax = 0 AS is_new`,
  row: { is_new: boolean },
});

/** The notice makes every process end the connections of the principals that were removed. */
const removeConnectorRow = defineStatement({
  name: 'delete_connector_of_worker_pool',
  text: `
    WITH gone AS (DELETE FROM worker_pool_connectors WHERE team_id = $1 AND pool = $2 AND uid = $3 RETURNING uid)
    SELECT uid, pg_notify('${keysChannel}', '')::text AS notified FROM gone`,
  row: { uid: text() },
});

const removePool = defineStatement({
  name: 'delete_worker_pool',
  text: `
    WITH gone AS (DELETE FROM worker_pools WHERE team_id = $1 AND name = $2 RETURNING name)
    SELECT name, pg_notify('${keysChannel}', '')::text AS notified FROM gone`,
  row: { name: text() },
});

const removeConnectorEverywhere = defineStatement({
  name: 'delete_connector_of_all_worker_pools',
  text: "DELETE FROM worker_pool_connectors WHERE team_id = $1 AND kind = 'user' AND uid = $2",
  row: {},
});

const readOwned = defineStatement({
  name: 'read_worker_pools_of_person',
  text: `
    SELECT name FROM worker_pools WHERE team_id = $1 AND owner_kind = 'user' AND owner_uid = $2
    ORDER BY name COLLATE "C" FOR UPDATE`,
  row: { name: text() },
});

type PoolRow = RowOf<typeof readOne>;

async function toPools(db: Queryable, teamId: string, rows: readonly PoolRow[]): Promise<WorkerPool[]> {
  const actors = rows.flatMap(({ owner_kind, owner_uid, connectors }) => [
    { kind: owner_kind, uid: owner_uid },
    ...connectors,
    ...connectors.map(({ added_by }) => ({ kind: 'user', uid: added_by }) as const),
  ]);
  const profileOf = await readProfiles(db, teamId, actors);
  return rows.map(({ owner_kind, owner_uid, connectors, ...pool }) => ({
    ...pool,
    owner: profileOf({ kind: owner_kind, uid: owner_uid }),
    connectors: connectors.map((each) => ({
      principal: profileOf(each),
      added_by: profileOf({ kind: 'user', uid: each.added_by }),
      added_at: each.added_at,
    })),
  }));
}

/** Returns the pools of the team, by name. */
export async function listPools(db: Queryable, teamId: string): Promise<WorkerPool[]> {
  return await toPools(db, teamId, await db.query(readAll, [teamId]));
}

/**
 * Reasons why a pool is not changed: `not_found` 404; `not_owner` 403: only the owner of the pool and administrators may change it;
 * `no_such_principal` 404: no principal with this uid may run workers in the team; `too_many` 409.
 */
export type PoolRefusal = 'not_found' | 'not_owner' | 'no_such_principal' | 'too_many';

/** Locks the pool if the caller may change it; otherwise returns the reason. */
async function lockOwn(tx: Queryable, { teamId, role, creator }: Principal, name: string) {
  const [pool] = await tx.query(lockPool, [teamId, name]);
  if (!pool) return 'not_found';
  const isOwn = pool.owner_kind === creator.kind && pool.owner_uid === creator.uid;
  return isOwn || isAtLeast(role, 'admin') ? pool : 'not_owner';
}

/** Lets a principal connect workers to a pool. `uid` names a person or an agent identity, whose keys may then connect, or a single agent key that has no identity. */
export async function addConnector(
  db: Database,
  principal: Principal,
  name: string,
  uid: string,
): Promise<WorkerPool | PoolRefusal> {
  const { teamId } = principal;
  return await db.transaction(async (tx) => {
    const pool = await lockOwn(tx, principal, name);
    if (typeof pool === 'string') return pool;
    const [found] = await tx.query(findConnector, [teamId, uid]);
    if (!found) return 'no_such_principal';
    const [added] = await tx.query(insertConnector, [
      teamId,
      name,
      found.kind,
      uid,
      principal.creator.uid,
      principal.creator.kind,
    ]);
    if (!added) return 'too_many';
    const [changed] = await toPools(tx, teamId, await tx.query(readOne, [teamId, name]));
    if (!changed) throw new Error('the pool was not read');
    if (added.is_new)
      await recordChange(tx, principal, {
        action: 'worker_pool_connector.create',
        subject: { type: 'worker_pool', uid: name, name },
        after: { connector: uid, kind: found.kind },
      });
    return changed;
  });
}

/**
 * Ends a principal's right to connect to a pool, and the connections that use this right. `no_such_principal`: the principal had no such
 * right.
 */
export async function removeConnector(
  db: Database,
  principal: Principal,
  name: string,
  uid: string,
): Promise<'removed' | PoolRefusal> {
  return await db.transaction(async (tx) => {
    const pool = await lockOwn(tx, principal, name);
    if (typeof pool === 'string') return pool;
    if ((await tx.query(removeConnectorRow, [principal.teamId, name, uid])).length === 0) return 'no_such_principal';
    await recordChange(tx, principal, {
      action: 'worker_pool_connector.delete',
      subject: { type: 'worker_pool', uid: name, name },
      before: { connector: uid },
      endsAccess: true,
    });
    return 'removed';
  });
}

const setOwner = defineStatement({
  name: 'take_over_worker_pool',
  text: `
    WITH taken AS (UPDATE worker_pools SET owner_kind = $3, owner_uid = $4 WHERE team_id = $1 AND name = $2 RETURNING name)
    SELECT name, pg_notify('${keysChannel}', '')::text AS notified FROM taken`,
  row: { name: text() },
});

/** Makes an administrator the owner of a pool. The connections of the earlier owner end, unless the earlier owner is a connector. */
export async function takeOverPool(
  db: Database,
  principal: Principal,
  name: string,
): Promise<WorkerPool | 'not_found'> {
  const { teamId, creator } = principal;
  return await db.transaction(async (tx) => {
    const [pool] = await tx.query(lockPool, [teamId, name]);
    if (!pool) return 'not_found';
    await tx.query(setOwner, [teamId, name, creator.kind, creator.uid]);
    const [changed] = await toPools(tx, teamId, await tx.query(readOne, [teamId, name]));
    if (!changed) throw new Error('the pool was not read');
    await recordChange(tx, principal, {
      action: 'worker_pool.update',
      subject: { type: 'worker_pool', uid: name, name },
      before: { owner: pool.owner_uid },
      after: { owner: creator.uid },
      endsAccess: true,
    });
    return changed;
  });
}

/** Deletes a pool and ends its connections. The next connection of a worker with the name of the pool creates it again. */
export async function deletePool(
  db: Database,
  principal: Principal,
  name: string,
): Promise<'deleted' | Exclude<PoolRefusal, 'no_such_principal' | 'too_many'>> {
  return await db.transaction(async (tx) => {
    const pool = await lockOwn(tx, principal, name);
    if (typeof pool === 'string') return pool;
    await endPool(tx, principal, name, pool.owner_uid);
    return 'deleted';
  });
}

async function endPool(tx: Queryable, by: Principal, name: string, ownerUid: string): Promise<void> {
  await tx.query(removePool, [by.teamId, name]);
  await recordChange(tx, by, {
    action: 'worker_pool.delete',
    subject: { type: 'worker_pool', uid: name, name },
    before: { owner: ownerUid },
    endsAccess: true,
  });
}

/**
 * Ends the right of a person to connect to pools of other owners. Returns the names of the person's own pools, and deletes them if
 * `isEnded`.
 */
export async function endPoolsOf(tx: Queryable, by: Principal, userUid: string, isEnded: boolean): Promise<string[]> {
  await tx.query(removeConnectorEverywhere, [by.teamId, userUid]);
  const names = (await tx.query(readOwned, [by.teamId, userUid])).map(({ name }) => name);
  if (isEnded) for (const name of names) await endPool(tx, by, name, userUid);
  return names;
}
