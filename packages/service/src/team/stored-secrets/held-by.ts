import { isSuspended } from '../access/keys/key.ts';

/**
 * SQL: a JSON list that says, for each of the given principals in order, whether the principal may use a stored secret. People use their
 * personal secrets and the team's secrets while they are members. The first principal is the executor, who uses no secrets while suspended;
 * the texts of a suspended author keep their rights. Service accounts use the team's secrets that list them; agent identities
 * also use the secrets in the identity's list. Deleted principals use no secrets. `secret` is the SQL name of a row of `stored_secrets`;
 * `kinds` and `uids` are SQL lists that name the principals.
 */
export const heldBy = (secret: string, kinds: string, uids: string): string => `(
  SELECT jsonb_agg(CASE
    WHEN p.kind = 'user' THEN (${secret}.owner_uid IS NULL OR ${secret}.owner_uid = p.uid) AND EXISTS (
      SELECT FROM team_members m JOIN users u ON u.id = m.user_id
      WHERE m.team_id = ${secret}.team_id AND u.uid = p.uid AND m.role <> 'viewer' AND (p.n > 1 OR NOT ${isSuspended('u.id')}))
    ELSE ${secret}.owner_uid IS NULL AND (
      EXISTS (SELECT FROM agent_identities i WHERE i.team_id = ${secret}.team_id AND i.uid = p.uid
        AND (${secret}.name = ANY(i.secrets) OR p.uid = ANY(${secret}.agent_uids)))
      OR (p.uid = ANY(${secret}.agent_uids) AND EXISTS (
        SELECT FROM api_keys k WHERE k.team_id = ${secret}.team_id AND k.kind = 'agent' AND coalesce(k.agent_uid, k.id::text) = p.uid)))
    END ORDER BY p.n)
  FROM unnest(${kinds}::text[], ${uids}::text[]) WITH ORDINALITY AS p (kind, uid, n))`;
