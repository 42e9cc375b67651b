import { hash, randomBytes } from 'node:crypto';

/**
 * Channel of notices that a key has ended or the rights of a person have changed. The payload is the id of a key; an empty payload means
 * any key.
 */
export const keysChannel = 'runyard_keys';

/** Returns a new raw key with 32 random bytes. */
export const newRawKey = (): string => `ryk_${randomBytes(32).toString('base64url')}`;

/** Returns a new key for an invitation, with 32 random bytes. */
export const newInvitationKey = (): string => `ryi_${randomBytes(32).toString('base64url')}`;

/** Returns the hash of a raw key, as the database stores it. The key is random, so it needs neither salt nor stretching. */
export const hashKey = (raw: string): Buffer => hash('sha256', raw, 'buffer');

/** Returns the first 8 and the last 4 characters of a key, which may still be shown after its creation. */
export function shownParts(raw: string): { prefix: string; lastFour: string } {
  return { prefix: raw.slice(0, 8), lastFour: raw.slice(-4) };
}

/**
 * SQL: an identity provider has not confirmed the person for too long. The person's keys do not work, and nothing starts for the person,
 * until the next sign-in. `userId` is an SQL expression for the person's id.
 */
export const isSuspended = (userId: string): string =>
  `EXISTS (SELECT FROM sign_on_identities i WHERE i.user_id = ${userId} AND i.confirmed_until <= clock_timestamp())`;

/**
 * SQL: the row `key` of `api_keys` has not expired. If it is a personal key, its person is also in the team whose id is the SQL expression
 * `teamId`.
 */
export const isValidKeyIn = (key: string, teamId: string): string => `
  ((${key}.expires_at IS NULL OR ${key}.expires_at > clock_timestamp())
    AND CASE WHEN ${key}.kind <> 'personal' THEN ${teamId} = ${key}.team_id
      ELSE EXISTS (SELECT FROM team_members m WHERE m.team_id = ${teamId} AND m.user_id = ${key}.user_id) END
    -- The person must also be in the team in which the key was created: when this membership ends, the key ends in all teams.
    AND (${key}.kind <> 'personal'
      OR EXISTS (SELECT FROM team_members m WHERE m.team_id = ${key}.team_id AND m.user_id = ${key}.user_id))
    AND (${key}.kind <> 'personal' OR ${key}.is_operator
      OR NOT ${isSuspended(`${key}.user_id`)}))`;

/** SQL: the row `key` of `api_keys` is the key of a browser session. */
export const isSession = (key: string): string =>
  `(${key}.minted_by IS NOT NULL OR ${key}.signed_on_by IS NOT NULL OR ${key}.passkey_id IS NOT NULL)`;

/**
 * SQL: the owner of the key may run workers in the team whose id is the SQL expression `teamId`, because the owner is not a viewer there.
 */
export const mayRunWorkersIn = (key: string, teamId: string): string => `
  (${key}.kind <> 'personal'
    OR EXISTS (SELECT FROM team_members m WHERE m.team_id = ${teamId} AND m.user_id = ${key}.user_id AND m.role <> 'viewer'))`;

/** SQL: the key is valid in the team in which it was created. */
export const isValidKey = (key: string): string => isValidKeyIn(key, `${key}.team_id`);

/** SQL: the row `key` of `api_keys` may connect workers of the hosted pool. */
export const mayServeHostedPool = (key: string): string => `(${key}.is_operator OR ${key}.kind = 'worker')`;

/**
 * SQL: the expressions `kind` and `uid` name the owner of the key, a person or a service account. A worker key has no such owner.
 */
const isOwnerOfKey = (key: string, kind: string, uid: string): string => `
  CASE WHEN ${key}.kind = 'agent' THEN ${kind} = 'service_account' AND ${uid} = coalesce(${key}.agent_uid, ${key}.id::text)
    ELSE ${kind} = 'user' AND ${uid} = (SELECT u.uid FROM users u WHERE u.id = ${key}.user_id) END`;

/**
 * SQL: workers may connect with the key to the pool with this name in the team, because the owner of the key owns the pool or was added to
 * it. Statements that use this condition must not use the aliases `mine` and `added`.
 */
export const mayConnectToPool = (key: string, teamId: string, name: string): string => `
  EXISTS (
    SELECT FROM worker_pools mine WHERE mine.team_id = ${teamId} AND mine.name = ${name}
      AND (${isOwnerOfKey(key, 'mine.owner_kind', 'mine.owner_uid')} OR EXISTS (
        SELECT FROM worker_pool_connectors added WHERE added.team_id = mine.team_id AND added.pool = mine.name
          AND ${isOwnerOfKey(key, 'added.kind', 'added.uid')})))`;
