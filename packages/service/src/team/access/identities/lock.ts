import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../../platform/store/database/statement.ts';

const lockIdentity = defineStatement({
  name: 'lock_agent_identity_for_key',
  // Puts a new key in an order with a change of `on_behalf_of_enabled` and with the delete of the identity, which
  // deletes the keys that it finds.
  text: 'SELECT on_behalf_of_enabled FROM agent_identities WHERE team_id = $1 AND uid = $2 FOR SHARE',
  row: { on_behalf_of_enabled: boolean },
});

/** Locks an identity until its new key is committed. Null: the team has no such identity. */
export async function lockIdentityForKey(
  tx: Queryable,
  teamId: string,
  uid: string,
): Promise<{ readonly onBehalfOfEnabled: boolean } | null> {
  const [row] = await tx.query(lockIdentity, [teamId, uid]);
  return row ? { onBehalfOfEnabled: row.on_behalf_of_enabled } : null;
}
