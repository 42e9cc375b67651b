import type { UserProfile } from '@runyard/contract/profiles';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../platform/store/database/statement.ts';
import type { RunActor } from './actor.ts';

const readNames = defineStatement({
  name: 'read_profiles',
  text: `
    SELECT 'user' AS kind, uid, display_name, email FROM users WHERE uid = ANY($1::text[])
    UNION ALL
    SELECT 'service_account', uid, name, NULL FROM agent_identities WHERE team_id = $2 AND uid = ANY($1::text[])
    UNION ALL
    SELECT 'service_account', coalesce(agent_uid, id::text), min(name), NULL FROM api_keys
    WHERE team_id = $2 AND kind = 'agent' AND coalesce(agent_uid, id::text) = ANY($1::text[])
      AND NOT EXISTS (SELECT FROM agent_identities i WHERE i.team_id = $2 AND i.uid = agent_uid)
    GROUP BY coalesce(agent_uid, id::text)`,
  row: { kind: text<'user' | 'service_account'>(), uid: text(), display_name: text(), email: nullable(text()) },
});

/** Reads names and addresses of creators and executors. The profile of a deleted one has only its uid. */
export async function readProfiles(
  db: Queryable,
  teamId: string,
  actors: readonly RunActor[],
): Promise<(actor: RunActor) => UserProfile> {
  const uids = [...new Set(actors.map(({ uid }) => uid))];
  const rows = await db.query(readNames, [uids, teamId]);
  const known = new Map(rows.map((row) => [`${row.kind} ${row.uid}`, row]));
  return ({ kind, uid }) => {
    const found = known.get(`${kind} ${uid}`);
    return {
      type: kind,
      uid,
      ...(found ? { display_name: found.display_name } : {}),
      ...(found?.email ? { email: found.email } : {}),
    };
  };
}
