/** Stores the passkeys of people. */
import { randomUUIDv7 } from 'node:crypto';
import { maxPasskeys } from '@runyard/contract/limits';
import type { Passkey } from '@runyard/contract/team/passkeys';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { recordChange } from '../audit/record.ts';
import { isSession, keysChannel } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';
import type { MadePasskey } from './verify.ts';

const columns = 'p.id, p.name, p.is_synced, p.created_at, p.last_used_at';
const row = {
  id: uuid,
  name: text(),
  is_synced: boolean,
  created_at: timestamp,
  last_used_at: nullable(timestamp),
};

/** SQL: the passkey `p` belongs to the person with the UID `$1`. */
const isOwn = 'p.user_id = (SELECT u.id FROM users u WHERE u.uid = $1)';

const readOwn = defineStatement({
  name: 'read_own_passkeys',
  text: `
    SELECT ${columns}, p.credential_id,
      EXISTS (SELECT FROM api_keys k WHERE k.id = $2 AND k.passkey_id = p.id) AS is_current
    FROM passkeys p WHERE ${isOwn} ORDER BY p.created_at, p.id`,
  row: { ...row, credential_id: bytes, is_current: boolean },
});

/** Because of this lock, changes of the passkeys of one person happen one after the other. */
const lockPerson = defineStatement({
  name: 'lock_passkeys_of_person',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('passkeys of ' || $1, 0))`,
  row: {},
});

const insert = defineStatement({
  name: 'insert_passkey',
  text: `
    INSERT INTO passkeys AS p (id, user_id, credential_id, public_key, counter, name, transports, is_synced)
    SELECT $2, u.id, $3, $4, $5, $6, $7::text[], $8 FROM users u WHERE u.uid = $1
    ON CONFLICT (credential_id) DO NOTHING RETURNING ${columns}`,
  row,
});

const rename = defineStatement({
  name: 'rename_passkey',
  text: `UPDATE passkeys p SET name = $3 WHERE ${isOwn} AND p.id = $2 RETURNING ${columns}`,
  row,
});

const lockOne = defineStatement({
  name: 'lock_passkey',
  text: `SELECT p.name FROM passkeys p WHERE ${isOwn} AND p.id = $2 FOR UPDATE`,
  row: { name: text() },
});

const readOtherWays = defineStatement({
  name: 'read_whether_person_can_sign_in_without_passkey',
  text: `
    SELECT EXISTS (SELECT FROM passkeys p WHERE ${isOwn} AND p.id <> $2)
      OR EXISTS (SELECT FROM users u JOIN sign_on_identities i ON i.user_id = u.id WHERE u.uid = $1)
      OR EXISTS (
        SELECT FROM users u JOIN team_members m ON m.user_id = u.id JOIN api_keys k ON k.team_id = m.team_id AND k.user_id = u.id
        WHERE u.uid = $1 AND NOT ${isSession('k')} AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())) AS found`,
  row: { found: boolean },
});

/** The sessions of the passkey end with it. */
const remove = defineStatement({
  name: 'delete_passkey',
  text: `
    WITH gone AS (DELETE FROM passkeys WHERE id = $1 RETURNING id)
    SELECT pg_notify('${keysChannel}', '') FROM gone`,
  row: {},
});

const readByCredential = defineStatement({
  name: 'read_passkey_by_credential',
  text: `
    SELECT p.id, p.public_key, p.counter, u.uid AS user_uid FROM passkeys p JOIN users u ON u.id = p.user_id
    WHERE p.credential_id = $1`,
  row: { id: uuid, public_key: bytes, counter: integer, user_uid: text() },
});

/**
 * The counter of an authenticator only grows, unless the authenticator does not count and always reports 0. So of two concurrent answers
 * with the same counter, one is refused (Web Authentication, 7.2, step 22).
 */
const noteUse = defineStatement({
  name: 'note_passkey_use',
  text: `
    UPDATE passkeys SET counter = $2, last_used_at = now() WHERE id = $1 AND (counter < $2 OR (counter = 0 AND $2 = 0))
    RETURNING id`,
  row: { id: uuid },
});

const toPasskey = ({ last_used_at: lastUsedAt, ...rest }: RowOf<typeof rename>): Passkey => ({
  ...rest,
  ...(lastUsedAt === null ? {} : { last_used_at: lastUsedAt }),
});

/** Returns the passkeys of the caller, oldest first. */
export async function listPasskeys(db: Queryable, { creator, keyId }: Principal): Promise<Passkey[]> {
  const rows = await db.query(readOwn, [creator.uid, keyId]);
  return rows.map(({ credential_id: _id, is_current: isCurrent, ...each }) => ({
    ...toPasskey(each),
    ...(isCurrent ? { is_current: true as const } : {}),
  }));
}

/** Returns the credential ids of the caller as base64url; `too_many`: the caller cannot add a passkey. */
export async function credentialsOf(db: Queryable, { creator, keyId }: Principal): Promise<string[] | 'too_many'> {
  const rows = await db.query(readOwn, [creator.uid, keyId]);
  return rows.length >= maxPasskeys ? 'too_many' : rows.map((each) => each.credential_id.toString('base64url'));
}

/** Stores a passkey of the person with the UID; returns null if the credential is stored already. */
export async function insertPasskey(
  tx: Queryable,
  userUid: string,
  name: string,
  { credentialId, publicKey, counter, transports, isSynced }: MadePasskey,
): Promise<Passkey | null> {
  const values = [userUid, randomUUIDv7(), credentialId, publicKey, counter, name, transports, isSynced];
  const [inserted] = await tx.query(insert, values);
  return inserted ? toPasskey(inserted) : null;
}

/** Reasons why a passkey is not added. `too_many` 409; `known` 403: the credential is stored already. */
export type AddRefusal = 'too_many' | 'known';

/** Adds a passkey of the caller. */
export async function addPasskey(
  tx: Queryable,
  principal: Principal,
  name: string,
  made: MadePasskey,
): Promise<Passkey | AddRefusal> {
  const { uid } = principal.creator;
  await tx.query(lockPerson, [uid]);
  if ((await credentialsOf(tx, principal)) === 'too_many') return 'too_many';
  const added = await insertPasskey(tx, uid, name, made);
  if (added === null) return 'known';
  await recordChange(tx, principal, {
    action: 'passkey.create',
    subject: { type: 'passkey', uid: added.id, name },
    after: { is_synced: added.is_synced },
  });
  return added;
}

/** Renames a passkey of the caller; returns null if the caller has no such passkey. */
export async function renamePasskey(
  db: Database,
  principal: Principal,
  id: string,
  name: string,
): Promise<Passkey | null> {
  const { uid } = principal.creator;
  return await db.transaction(async (tx) => {
    const [before] = await tx.query(lockOne, [uid, id]);
    const [renamed] = await tx.query(rename, [uid, id, name]);
    if (!before || !renamed) return null;
    const subject = { type: 'passkey', uid: id, name };
    await recordChange(tx, principal, {
      action: 'passkey.update',
      subject,
      before: { name: before.name },
      after: { name },
    });
    return toPasskey(renamed);
  });
}

/** Reasons why a passkey is not deleted. `not_found` 404; `last_way` 409: the person could not sign in again. */
export type PasskeyDeleteRefusal = 'not_found' | 'last_way';

/** Deletes a passkey of the caller, with the sessions that it began. */
export async function deletePasskey(
  db: Database,
  principal: Principal,
  id: string,
): Promise<'deleted' | PasskeyDeleteRefusal> {
  const { uid } = principal.creator;
  return await db.transaction(async (tx) => {
    await tx.query(lockPerson, [uid]);
    const [found] = await tx.query(lockOne, [uid, id]);
    if (!found) return 'not_found';
    const [otherWays] = await tx.query(readOtherWays, [uid, id]);
    if (!otherWays?.found) return 'last_way';
    await tx.query(remove, [id]);
    await recordChange(tx, principal, {
      action: 'passkey.delete',
      subject: { type: 'passkey', uid: id, name: found.name },
      endsAccess: true,
    });
    return 'deleted';
  });
}

/** Finds the passkey with this credential id, which is base64url. */
export async function findPasskey(
  db: Queryable,
  credentialId: string,
): Promise<RowOf<typeof readByCredential> | undefined> {
  return (await db.query(readByCredential, [Buffer.from(credentialId, 'base64url')]))[0];
}

/** Stores the counter after a use. Returns false if the passkey was deleted, or has reported this counter or a higher one. */
export async function notePasskeyUse(tx: Queryable, id: string, counter: number): Promise<boolean> {
  return (await tx.query(noteUse, [id, counter])).length > 0;
}
