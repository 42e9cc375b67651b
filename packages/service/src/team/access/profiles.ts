import type { UserProfile } from '@runyard/contract/wire/profiles';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../platform/store/database/statement.ts';
import type { RunActor } from './actor.ts';

/** SQL: a query for the names of the people and service accounts with these uids. */
const namesOf = (uids: string, teamId: string): string => `
    SELECT 'user' AS kind, uid, display_name, email FROM users WHERE uid = ANY(${uids})
    UNION ALL
    SELECT 'service_account', uid, name, NULL FROM agent_identities WHERE team_id = ${teamId} AND uid = ANY(${uids})
    UNION ALL
    SELECT 'service_account', coalesce(agent_uid, id::text), min(name), NULL FROM api_keys
    WHERE team_id = ${teamId} AND kind = 'agent' AND coalesce(agent_uid, id::text) = ANY(${uids})
      AND NOT EXISTS (SELECT FROM agent_identities i WHERE i.team_id = ${teamId} AND i.uid = agent_uid)
    GROUP BY coalesce(agent_uid, id::text)`;

const readNames = defineStatement({
  name: 'read_profiles',
  text: namesOf('$1::text[]', '$2'),
  row: { kind: text<'user' | 'service_account'>(), uid: text(), display_name: text(), email: nullable(text()) },
});

/** The name and the address of a person, or the name of a service account. */
export type NameAndAddress = { readonly display_name: string; readonly email: string | null };

/** SQL: the `NameAndAddress` of an actor as JSON; NULL if the person or the account was deleted. */
export const nameAndAddressOf = (kind: string, uid: string, teamId: string): string => `(
  SELECT jsonb_build_object('display_name', n.display_name, 'email', n.email) FROM (${namesOf(`ARRAY[${uid}]`, teamId)}) n WHERE n.kind = ${kind})`;

const readUids = defineStatement({
  name: 'read_uids_of_addresses',
  text: `
    SELECT u.uid FROM team_members m JOIN users u ON u.id = m.user_id
    WHERE m.team_id = $1 AND lower(u.email) = ANY($2::text[])`,
  row: { uid: text() },
});

/** Returns the UIDs of the people of the team with these email addresses. Upper and lower case are equal. */
export async function uidsOfAddresses(db: Queryable, teamId: string, addresses: readonly string[]): Promise<string[]> {
  const rows = await db.query(readUids, [teamId, addresses.map((address) => address.toLowerCase())]);
  return rows.map(({ uid }) => uid);
}

/** Reads names and addresses of creators and executors. The profile of a deleted person or identity has only the uid. */
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
