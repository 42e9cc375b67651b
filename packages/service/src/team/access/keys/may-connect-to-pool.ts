/** SQL: the person or service account of the key, as `kind` and `uid` of a pool name it. */
const isOwnerOfKey = (key: string, kind: string, uid: string): string => `
  CASE WHEN ${key}.kind = 'agent' THEN ${kind} = 'service_account' AND ${uid} = coalesce(${key}.agent_uid, ${key}.id::text)
    ELSE ${kind} = 'user' AND ${uid} = (SELECT u.uid FROM users u WHERE u.id = ${key}.user_id) END`;

/**
 * SQL: whether workers connect with the key to the pool of this name in the team: its own pool, or one to which its owner was added. The
 * aliases `mine` and `added` are of no statement that uses it.
 */
export const mayConnectToPool = (key: string, teamId: string, name: string): string => `
  EXISTS (
    SELECT FROM worker_pools mine WHERE mine.team_id = ${teamId} AND mine.name = ${name}
      AND (${isOwnerOfKey(key, 'mine.owner_kind', 'mine.owner_uid')} OR EXISTS (
        SELECT FROM worker_pool_connectors added WHERE added.team_id = mine.team_id AND added.pool = mine.name
          AND ${isOwnerOfKey(key, 'added.kind', 'added.uid')})))`;
