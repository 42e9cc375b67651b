import type { Queryable } from '../../store/database/database.ts';

/** What teams may have a limited number of. */
type Limited = 'api_keys' | 'environments' | 'event_subscriptions';

/**
 * True where the team has fewer than `max` rows in the table. Call it in the transaction that adds one: until its end nobody else
 * can, so that of two creates at once the second counts what the first made.
 */
export async function teamHasRoom(tx: Queryable, teamId: string, table: Limited, max: number): Promise<boolean> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${table} of ${teamId}`]);
  const [count] = await tx.query<{ room: boolean }>(`SELECT count(*) < $2 AS room FROM ${table} WHERE team_id = $1`, [
    teamId,
    max,
  ]);
  return count?.room ?? false;
}
