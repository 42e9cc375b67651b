/** SQL: the row `key` of `api_keys` has not expired, and the person of a personal key is in the team whose id is the SQL `teamId`. */
export const isValidKeyIn = (key: string, teamId: string): string => `
  ((${key}.expires_at IS NULL OR ${key}.expires_at > clock_timestamp())
    AND CASE WHEN ${key}.kind = 'agent' THEN ${teamId} = ${key}.team_id
      ELSE EXISTS (SELECT FROM team_members m WHERE m.team_id = ${teamId} AND m.user_id = ${key}.user_id) END
    -- A key ends with the membership in the team that it was made in, wherever it acts.
    AND (${key}.kind = 'agent'
      OR EXISTS (SELECT FROM team_members m WHERE m.team_id = ${key}.team_id AND m.user_id = ${key}.user_id)))`;

/**
 * SQL: the owner of the key may run workers in the team whose id is the SQL `teamId`: the owner is not a viewer there.
 */
export const mayRunWorkersIn = (key: string, teamId: string): string => `
  (${key}.kind = 'agent'
    OR EXISTS (SELECT FROM team_members m WHERE m.team_id = ${teamId} AND m.user_id = ${key}.user_id AND m.role <> 'viewer'))`;

/** SQL: the key is valid in the team in which it was created. */
export const isValidKey = (key: string): string => isValidKeyIn(key, `${key}.team_id`);
