import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../platform/store/database/statement.ts';

const find = defineStatement({
  name: 'find_named_subscriptions',
  text: 'SELECT id FROM event_subscriptions WHERE team_id = $1 AND id = ANY($2::uuid[])',
  row: { id: uuid },
});

/** Returns which of these ids belong to event subscriptions of the team. */
export async function findSubscriptions(
  db: Queryable,
  teamId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  return new Set((await db.query(find, [teamId, ids])).map(({ id }) => id));
}
