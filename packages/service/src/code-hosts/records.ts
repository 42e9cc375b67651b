/** Stored credentials of code hosts. */
import { randomUUIDv7 } from 'node:crypto';
import { isAtLeast } from '@runyard/contract/access';
import type {
  CodeHostCredential,
  CodeHostCredentialKind,
  CreateCodeHostCredentialRequest,
} from '@runyard/contract/code-hosts';
import { maxCodeHostCredentials } from '@runyard/contract/limits';
import type { Principal } from '../access/keys/principal.ts';
import { readProfiles } from '../access/profiles.ts';
import type { Vault } from '../secrets/vault.ts';
import type { Queryable, Statement } from '../store/database/database.ts';
import { boolean, defineStatement, nullable, type RowOf, text, timestamp, uuid } from '../store/database/statement.ts';

/** Returns the purpose of a sealed secret. One that is copied to another credential cannot be opened there. */
export const sealPurpose = (credentialId: string): string => `code host credential ${credentialId}`;

const columns = `c.id, c.kind, c.host, c.owner, c.username, c.app_id, c.installation_id, c.created_at,
  (SELECT uid FROM users WHERE users.id = c.user_id) AS user_uid`;
const row = {
  id: uuid,
  kind: text<CodeHostCredentialKind>(),
  host: text(),
  owner: nullable(text()),
  username: nullable(text()),
  app_id: nullable(text()),
  installation_id: nullable(text()),
  created_at: timestamp,
  user_uid: nullable(text()),
};

const userId = '(SELECT id FROM users WHERE uid = $3)';

/** Administrators see all of the team, members those of the team and their own. */
const listVisible = defineStatement({
  name: 'list_code_host_credentials',
  text: `
    SELECT ${columns} FROM code_host_credentials c
    WHERE c.team_id = $1 AND ($2::boolean OR c.user_id IS NULL OR c.user_id = ${userId}) ORDER BY c.id`,
  row,
});

/** Administrators delete all of the team, members their own. */
const removeOwn = defineStatement({
  name: 'delete_code_host_credential',
  text: `DELETE FROM code_host_credentials WHERE team_id = $1 AND ($2::boolean OR user_id = ${userId}) AND id = $4 RETURNING id`,
  row: { id: uuid },
});

const lockPlaces: Statement = {
  name: 'lock_code_host_credentials',
  text: "SELECT pg_advisory_xact_lock(hashtextextended('code_host_credentials of ' || $1, 0))",
};

const readRoom = defineStatement({
  name: 'read_room_for_code_host_credential',
  text: `
    SELECT count(*) < $3 AS has_room,
      coalesce(bool_or(host = $4 AND owner IS NOT DISTINCT FROM $5), false) AS is_taken
    FROM code_host_credentials
    WHERE team_id = $1 AND user_id IS NOT DISTINCT FROM (SELECT id FROM users WHERE uid = $2)`,
  row: { has_room: boolean, is_taken: boolean },
});

const insert = defineStatement({
  name: 'insert_code_host_credential',
  text: `
    INSERT INTO code_host_credentials AS c
      (id, team_id, user_id, kind, host, owner, username, app_id, installation_id, vault_key_id, sealed_secret)
    VALUES ($1, $2, (SELECT id FROM users WHERE uid = $3), $4, $5, $6, $7, $8, $9, $10, $11) RETURNING ${columns}`,
  row,
});

async function toCredentials(
  db: Queryable,
  teamId: string,
  rows: readonly RowOf<typeof insert>[],
): Promise<CodeHostCredential[]> {
  const people = rows.flatMap(({ user_uid: uid }) => (uid === null ? [] : [{ kind: 'user' as const, uid }]));
  const profileOf = await readProfiles(db, teamId, people);
  return rows.map(({ user_uid, ...each }) => ({
    id: each.id,
    scope: user_uid === null ? 'team' : 'personal',
    kind: each.kind,
    host: each.host,
    ...(each.owner === null ? {} : { owner: each.owner }),
    ...(each.username === null ? {} : { username: each.username }),
    ...(each.app_id === null ? {} : { app_id: each.app_id }),
    ...(each.installation_id === null ? {} : { installation_id: each.installation_id }),
    ...(user_uid === null ? {} : { user: profileOf({ kind: 'user', uid: user_uid }) }),
    created_at: each.created_at,
  }));
}

const manager = ({ teamId, role, creator }: Principal) => [teamId, isAtLeast(role, 'admin'), creator.uid];

/** Returns the credentials that the principal may see, oldest first. */
export async function listCodeHostCredentials(db: Queryable, principal: Principal): Promise<CodeHostCredential[]> {
  return await toCredentials(db, principal.teamId, await db.query(listVisible, manager(principal)));
}

/** `taken`: there is one for the same host and owner. `too_many`: the team or the person has the largest number allowed. */
export type StoredCredential = CodeHostCredential | 'taken' | 'too_many';

/** Stores a credential for `host`: of the principal's team, or of the principal. */
export async function createCodeHostCredential(
  tx: Queryable,
  vault: Vault,
  principal: Principal,
  request: CreateCodeHostCredentialRequest & { readonly host: string },
): Promise<StoredCredential> {
  const { teamId, creator } = principal;
  const userUid = request.scope === 'personal' ? creator.uid : null;
  const host = request.host.toLowerCase();
  const owner = request.owner?.toLowerCase() ?? null;
  await tx.query(lockPlaces, [teamId]);
  const [room] = await tx.query(readRoom, [teamId, userUid, maxCodeHostCredentials, host, owner]);
  if (room?.is_taken) return 'taken';
  if (!room?.has_room) return 'too_many';
  const id = randomUUIDv7();
  const secret = (request.kind === 'token' ? request.token : request.private_key) ?? '';
  const rows = await tx.query(insert, [
    id,
    teamId,
    userUid,
    request.kind,
    host,
    owner,
    request.kind === 'token' ? (request.username ?? 'x-access-token') : null,
    request.app_id ?? null,
    request.installation_id ?? null,
    vault.keyId,
    vault.seal(sealPurpose(id), secret),
  ]);
  const [made] = await toCredentials(tx, teamId, rows);
  if (!made) throw new Error('the credential was not inserted');
  return made;
}

/** Deletes a credential. False: there is none with this id, or the principal may not delete it. */
export async function deleteCodeHostCredential(db: Queryable, principal: Principal, id: string): Promise<boolean> {
  return (await db.query(removeOwn, [...manager(principal), id])).length > 0;
}
