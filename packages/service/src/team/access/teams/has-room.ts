import type { Queryable } from '../../../platform/store/database/database.ts';

/** Tables in which the number of rows of a team is limited. */
type Limited =
  | 'agent_identities'
  | 'api_keys'
  | 'environments'
  | 'event_subscriptions'
  | 'factories'
  | 'mcp_servers'
  | 'schedules'
  | 'team_invitations'
  | 'team_members'
  | 'worker_pools';

/**
 * SQL: selects rows that do not count. Browser sessions have a separate limit, and the schedules of automations are limited by the number
 * of automations.
 */
const uncounted: Readonly<Partial<Record<Limited, string>>> = {
  api_keys: 'AND minted_by IS NULL AND signed_on_by IS NULL',
  schedules: 'AND automation_uid IS NULL',
};

/** Waits for a lock for this table and team, and holds the lock until the transaction ends. */
export async function lockRows(tx: Queryable, teamId: string, table: Limited): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${table} of ${teamId}`]);
}

/**
 * Returns whether the team has fewer than `max` rows in the table. Call this function in the transaction that adds a row. It holds a lock
 * until the transaction ends, so that the later of two concurrent creates also counts the row of the earlier one.
 */
export async function teamHasRoom(tx: Queryable, teamId: string, table: Limited, max: number): Promise<boolean> {
  await lockRows(tx, teamId, table);
  const [count] = await tx.query<{ room: boolean }>(
    `SELECT count(*) < $2 AS room FROM ${table} WHERE team_id = $1 ${uncounted[table] ?? ''}`,
    [teamId, max],
  );
  return count?.room ?? false;
}
