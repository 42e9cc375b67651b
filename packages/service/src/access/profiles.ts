import type { UserProfile } from '@runyard/contract/profiles';
import type { Queryable, Statement } from '../store/database/database.ts';
import type { RunActor } from './actor.ts';

const readNames: Statement = {
  name: 'read_profiles',
  text: `
    SELECT 'user' AS kind, uid, display_name, email FROM users WHERE uid = ANY($1::text[])
    UNION ALL
    SELECT 'service_account', coalesce(agent_uid, id::text), min(name), NULL FROM api_keys
    WHERE team_id = $2 AND kind = 'agent' AND coalesce(agent_uid, id::text) = ANY($1::text[])
    GROUP BY coalesce(agent_uid, id::text)`,
};

/** Names and addresses of creators and executors; one that was deleted keeps its uid. */
export async function readProfiles(
  db: Queryable,
  teamId: string,
  actors: readonly RunActor[],
): Promise<(actor: RunActor) => UserProfile> {
  const uids = [...new Set(actors.map(({ uid }) => uid))];
  const rows = await db.query<{ kind: string; uid: string; display_name: string; email: string | null }>(readNames, [
    uids,
    teamId,
  ]);
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
