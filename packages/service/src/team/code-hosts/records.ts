/** Stores the credentials for code hosts. */
import { randomUUIDv7 } from 'node:crypto';
import { maxCodeHostCredentials } from '@runyard/contract/limits';
import type {
  CodeHostCredential,
  CodeHostCredentialKind,
  CreateCodeHostCredentialRequest,
} from '@runyard/contract/team/code-hosts';
import { isAtLeast } from '@runyard/contract/wire/access';
import { defineSealedRows } from '../../platform/secrets/seal-again.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { recordChange } from '../access/audit/record.ts';
import type { Principal } from '../access/keys/principal.ts';
import { decideOwnership, maySee, type Owner, ownerOf } from '../access/ownership.ts';
import { readProfiles } from '../access/profiles.ts';

/**
 * Returns the purpose with which the secret of a credential is encrypted. Because of it, an encrypted secret that is copied to another
 * credential cannot be decrypted there.
 */
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

/**
 * Lists the credentials of the team, and personal credentials in it. If $2 is true, lists the personal credentials of all people, else only
 * those of the person $3.
 */
const listAll = defineStatement({
  name: 'list_code_host_credentials',
  text: `
    SELECT ${columns} FROM code_host_credentials c
    WHERE c.team_id = $1 AND ($2::boolean OR c.user_id IS NULL OR c.user_id = (SELECT id FROM users WHERE uid = $3)) ORDER BY c.id`,
  row,
});

const lockOne = defineStatement({
  name: 'lock_code_host_credential',
  text: `SELECT ${columns} FROM code_host_credentials c WHERE c.team_id = $1 AND c.id = $2 FOR UPDATE OF c`,
  row,
});

const remove = defineStatement({
  name: 'delete_code_host_credential',
  text: 'DELETE FROM code_host_credentials WHERE id = $1 RETURNING id',
  row: { id: uuid },
});

const lockPlaces = defineStatement({
  name: 'lock_code_host_credentials',
  text: "SELECT pg_advisory_xact_lock(hashtextextended('code_host_credentials of ' || $1, 0))",
  row: {},
});

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

type CredentialRow = RowOf<typeof insert>;

async function toCredentials(
  db: Queryable,
  teamId: string,
  rows: readonly CredentialRow[],
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

const ownerOfRow = (teamId: string, { user_uid: userUid }: Pick<CredentialRow, 'user_uid'>): Owner =>
  userUid === null ? { teamId } : { teamId, userUid };

/** Returns the members of a credential that the audit log shows. */
const stateOf = ({ kind, host, owner, username, app_id, user_uid }: CredentialRow) => ({
  kind,
  host,
  owner,
  username,
  app_id,
  scope: user_uid === null ? 'team' : 'personal',
});

const subjectOf = ({ id, host, owner }: CredentialRow) => ({
  type: 'code_host_credential',
  uid: id,
  name: owner === null ? host : `${host}/${owner}`,
});

/** Returns the credentials that the principal may see, oldest first. */
export async function listCodeHostCredentials(db: Queryable, principal: Principal): Promise<CodeHostCredential[]> {
  const { teamId, role, creator } = principal;
  const rows = await db.query(listAll, [teamId, isAtLeast(role, 'admin'), creator.uid]);
  const visible = rows.filter((each) => maySee(principal, ownerOfRow(teamId, each)));
  return await toCredentials(db, teamId, visible);
}

/**
 * `taken`: a credential for the same host and owner already exists. `too_many`: the team or the person already has the maximum number
 * allowed.
 */
export type StoredCredential = CodeHostCredential | 'taken' | 'too_many';

/** Stores a credential for `host`. It belongs to the principal's team or to the principal. */
export async function createCodeHostCredential(
  tx: Queryable,
  vault: Vault,
  principal: Principal,
  request: CreateCodeHostCredentialRequest & { readonly host: string },
): Promise<StoredCredential> {
  const { teamId } = principal;
  const holder = ownerOf(principal, request.scope);
  if (holder === 'forbidden') throw new Error('the route admits people only');
  const userUid = holder.userUid ?? null;
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
  const [inserted] = rows;
  const [made] = await toCredentials(tx, teamId, rows);
  if (!inserted || !made) throw new Error('the credential was not inserted');
  const change = { action: 'code_host_credential.create', after: stateOf(inserted) } as const;
  await recordChange(tx, principal, { ...change, subject: subjectOf(inserted) });
  return made;
}

/** Deletes a credential. Returns false if there is no credential with this id, or the principal may not delete it. */
export async function deleteCodeHostCredential(tx: Queryable, principal: Principal, id: string): Promise<boolean> {
  const { teamId, role } = principal;
  const [row] = await tx.query(lockOne, [teamId, id]);
  if (!row || decideOwnership(principal, ownerOfRow(teamId, row), 'delete') !== 'allowed') return false;
  // Only administrators may change team credentials, because these give access to private repositories.
  if (row.user_uid === null && !isAtLeast(role, 'admin')) return false;
  await tx.query(remove, [id]);
  const change = { action: 'code_host_credential.delete', before: stateOf(row), endsAccess: true } as const;
  await recordChange(tx, principal, { ...change, subject: subjectOf(row) });
  return true;
}

/** Names the columns with the encrypted secret parts of credentials for code hosts. */
export const sealedCredentials = defineSealedRows({
  table: 'code_host_credentials',
  id: 'id',
  sealed: 'sealed_secret',
  purpose: sealPurpose,
});

const readKey = defineStatement({
  name: 'read_key_of_github_app',
  text: `SELECT id, team_id, host, app_id, vault_key_id, sealed_secret FROM code_host_credentials
    WHERE id = $1 AND kind = 'github_app' AND user_id IS NULL`,
  row: {
    id: uuid,
    team_id: uuid,
    host: text(),
    app_id: nullable(text()),
    vault_key_id: text(),
    sealed_secret: bytes,
  },
});

/** Returns the host and the id of the App whose key is a credential of the team; null if the team has no such credential. */
export async function findAppCredential(
  db: Queryable,
  teamId: string,
  id: string,
): Promise<{ readonly host: string; readonly appId: string } | null> {
  const [found] = await db.query(readKey, [id]);
  return found?.team_id === teamId ? { host: found.host, appId: found.app_id ?? '' } : null;
}

/** Returns a function that decrypts the private key of an App as PEM; null if the key is not stored, or this process cannot decrypt it. */
export async function openAppCredential(db: Queryable, vault: Vault, id: string): Promise<(() => string) | null> {
  const [found] = await db.query(readKey, [id]);
  if (!found || !vault.keyIds.includes(found.vault_key_id)) return null;
  return () => vault.open(sealPurpose(found.id), found.sealed_secret);
}
