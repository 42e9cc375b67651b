/** SQL: the row `key` of `api_keys` has not expired, and the user of a personal key is a member of the team. */
export const isValidKey = (key: string): string => `
  ((${key}.expires_at IS NULL OR ${key}.expires_at > clock_timestamp())
    AND (${key}.kind = 'agent'
      OR EXISTS (SELECT FROM team_members m WHERE m.team_id = ${key}.team_id AND m.user_id = ${key}.user_id)))`;
