/** Signs in browsers: a page exchanges a one-time code, or the key of a person, for the key of a session. */
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import {
  type BrowserSession,
  browserSessionHours,
  type CreateBrowserSessionRequest,
  type CreateSignInCodeResponse,
  type SignInCodeOwner,
  signInCodeSeconds,
} from '@runyard/contract/team/browser-sessions';
import type { z } from 'zod';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, text, timestamp, uuid } from '../../../platform/store/database/statement.ts';
import { recordAction, recordChange } from '../audit/record.ts';
import { hashKey, isSession, isSuspended, isValidKeyIn, keysChannel, newRawKey, shownParts } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';

/** Maximum number of codes of one key, and maximum number of sessions. A further code or session replaces the oldest one. */
const maxCodes = 20;
const maxSessions = 50;

const insertCode = defineStatement({
  name: 'insert_sign_in_code',
  text: `
    INSERT INTO sign_in_codes (hash, key_id, team_id, expires_at)
    VALUES ($1, $2, $3, clock_timestamp() + interval '${signInCodeSeconds} seconds') RETURNING expires_at`,
  row: { expires_at: timestamp },
});

const deleteOldCodes = defineStatement({
  name: 'delete_old_sign_in_codes',
  text: `
    DELETE FROM sign_in_codes WHERE expires_at <= clock_timestamp()
      OR hash IN (SELECT hash FROM sign_in_codes WHERE key_id = $1 ORDER BY expires_at DESC OFFSET ${maxCodes - 1})`,
  row: {},
});

const sessionColumns = `team_id, expires_at, coalesce(minted_by, signed_on_by, passkey_id) AS made_by,
      (SELECT u.uid FROM users u WHERE u.id = user_id) AS user_uid,
      (SELECT u.display_name FROM users u WHERE u.id = user_id) AS display_name`;
const sessionRow = { team_id: uuid, expires_at: timestamp, made_by: uuid, user_uid: text(), display_name: text() };

/** SQL: inserts a session for the person's key in the relation `used`. */
const insertSession = `
    INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four, expires_at, minted_by)
    SELECT $2, $3, 'personal', 'Browser session', coalesce(used.team_id, k.team_id), k.user_id, $4, $5,
      least(k.expires_at, now() + interval '${browserSessionHours} hours'), k.id
    FROM used JOIN api_keys k ON k.id = used.key_id
    WHERE k.kind = 'personal' AND NOT ${isSession('k')} AND ${isValidKeyIn('k', 'coalesce(used.team_id, k.team_id)')}
    FOR KEY SHARE OF k
    RETURNING ${sessionColumns}`;

/**
 * The statement deletes the code, so that the code can be used only once. It locks the key that created the code. So if this key is deleted
 * at the same time, the new session is deleted too.
 */
const useCode = defineStatement({
  name: 'use_sign_in_code',
  text: `
    WITH used AS (DELETE FROM sign_in_codes WHERE hash = $1 AND expires_at > clock_timestamp() RETURNING key_id, team_id)
    ${insertSession}`,
  row: sessionRow,
});

const readCode = defineStatement({
  name: 'read_owner_of_sign_in_code',
  text: `
    SELECT u.display_name, t.name AS team_name FROM sign_in_codes c JOIN api_keys k ON k.id = c.key_id JOIN users u ON u.id = k.user_id
    JOIN teams t ON t.id = c.team_id WHERE c.hash = $1 AND c.expires_at > clock_timestamp()`,
  row: { display_name: text(), team_name: text() },
});

const useKey = defineStatement({
  name: 'use_key_to_sign_in',
  text: `WITH used AS (SELECT id AS key_id, NULL::uuid AS team_id FROM api_keys WHERE hash = $1) ${insertSession}`,
  row: sessionRow,
});

/** The statement locks the membership. So if the membership ends at the same time, the new session is deleted too. */
const insertSignedOn = defineStatement({
  name: 'insert_signed_on_session',
  text: `
    INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four, expires_at, signed_on_by)
    SELECT $2, $3, 'personal', 'Browser session', m.team_id, m.user_id, $4, $5, now() + interval '${browserSessionHours} hours', i.id
    FROM sign_on_identities i JOIN team_members m ON m.user_id = i.user_id JOIN teams t ON t.id = m.team_id
    WHERE i.id = $1 ORDER BY t.number LIMIT 1
    FOR KEY SHARE OF m
    RETURNING ${sessionColumns}`,
  row: sessionRow,
});

/** Like `insert_signed_on_session`, for the passkey with the id. */
const insertByPasskey = defineStatement({
  name: 'insert_session_by_passkey',
  text: `
    INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four, expires_at, passkey_id)
    SELECT $2, $3, 'personal', 'Browser session', m.team_id, m.user_id, $4, $5, now() + interval '${browserSessionHours} hours', p.id
    FROM passkeys p JOIN team_members m ON m.user_id = p.user_id JOIN teams t ON t.id = m.team_id
    WHERE p.id = $1 AND NOT ${isSuspended('p.user_id')} ORDER BY t.number LIMIT 1
    FOR KEY SHARE OF m
    RETURNING ${sessionColumns}`,
  row: sessionRow,
});

/** The names in the audit log of proofs that are not API keys. */
const proofOf = new Map([
  [insertSignedOn, 'sign_on'],
  [insertByPasskey, 'passkey'],
]);

const deleteOldSessions = defineStatement({
  name: 'delete_old_browser_sessions',
  text: `
    DELETE FROM api_keys k WHERE ${isSession('k')} AND (expires_at <= clock_timestamp()
      OR id IN (SELECT id FROM api_keys WHERE minted_by = $1 OR signed_on_by = $1 OR passkey_id = $1
        ORDER BY created_at DESC, id DESC OFFSET ${maxSessions}))`,
  row: {},
});

const deleteSession = defineStatement({
  name: 'delete_browser_session',
  text: `
    WITH gone AS (DELETE FROM api_keys k WHERE id = $1 AND ${isSession('k')} RETURNING id)
    SELECT pg_notify('${keysChannel}', id::text) FROM gone`,
  row: {},
});

const deleteCodes = defineStatement({ name: 'delete_sign_in_codes', text: 'DELETE FROM sign_in_codes', row: {} });

const deleteSessions = defineStatement({
  name: 'delete_browser_sessions',
  text: `DELETE FROM api_keys k WHERE ${isSession('k')}`,
  row: {},
});

/**
 * The sessions of a person are in teams of the person, so the index of a team's keys finds them. The statement also deletes the codes,
 * because they would open further sessions.
 */
const deleteSessionsOfPerson = defineStatement({
  name: 'delete_browser_sessions_of_person',
  text: `
    WITH own AS (
      SELECT k.id, ${isSession('k')} AS is_session FROM users u JOIN team_members m ON m.user_id = u.id
        JOIN api_keys k ON k.team_id = m.team_id AND k.user_id = u.id
      WHERE u.uid = $1),
    codes AS (DELETE FROM sign_in_codes WHERE key_id IN (SELECT id FROM own)),
    gone AS (DELETE FROM api_keys WHERE id IN (SELECT id FROM own WHERE is_session) RETURNING id)
    SELECT count(*)::int AS count, pg_notify('${keysChannel}', '') FROM gone`,
  row: { count: integer },
});

/** Creates a code for the owner of the key. Only the result contains the code; the table has its hash. */
export async function createSignInCode(db: Database, principal: Principal): Promise<CreateSignInCodeResponse> {
  const { keyId, teamId } = principal;
  const code = randomBytes(32).toString('base64url');
  return await db.transaction(async (tx) => {
    await tx.query(deleteOldCodes, [keyId]);
    const [row] = await tx.query(insertCode, [hashKey(code), keyId, teamId]);
    if (!row) throw new Error('the code was not inserted');
    await recordChange(tx, principal, { action: 'sign_in_code.create', subject: { type: 'key', uid: keyId } });
    return { code, expires_at: row.expires_at };
  });
}

/** Returns whom the code signs in; null if the code was used, has expired or is unknown. */
export async function readSignInCode(db: Queryable, code: string): Promise<z.infer<typeof SignInCodeOwner> | null> {
  return (await db.query(readCode, [hashKey(code)]))[0] ?? null;
}

/** A new session. Only this result contains the key of the session. */
export interface NewSession {
  readonly key: string;
  readonly session: BrowserSession;
}

/**
 * Exchanges a code or a key for a session. Returns null if the code was already used, has expired or is unknown. Also returns null if the
 * key has ended or does not belong to a person.
 */
export async function createBrowserSession(
  db: Database,
  { code, api_key: apiKey }: Pick<CreateBrowserSessionRequest, 'code' | 'api_key'>,
  from: RequestOrigin | null,
): Promise<NewSession | null> {
  const [statement, secret] = code === undefined ? [useKey, apiKey ?? ''] : [useCode, code];
  return await db.transaction(async (tx) => await insertSessionBy(tx, statement, hashKey(secret), from));
}

/**
 * Makes a session for a person who has just signed in with an identity provider, in the oldest team of the person. Returns
 * null if the person is in no team.
 */
export async function createSignedOnSession(
  tx: Queryable,
  identityId: string,
  from: RequestOrigin | null,
): Promise<NewSession | null> {
  return await insertSessionBy(tx, insertSignedOn, identityId, from);
}

/**
 * Makes a session for a person who has just signed in with a passkey, in the oldest team of the person. Returns null if the person is in
 * no team, or if an identity provider has not confirmed the person for too long.
 */
export async function createPasskeySession(
  tx: Queryable,
  passkeyId: string,
  from: RequestOrigin | null,
): Promise<NewSession | null> {
  return await insertSessionBy(tx, insertByPasskey, passkeyId, from);
}

async function insertSessionBy(
  tx: Queryable,
  statement: typeof useKey,
  credential: Buffer | string,
  from: RequestOrigin | null,
): Promise<NewSession | null> {
  const key = newRawKey();
  const { prefix, lastFour } = shownParts(key);
  const uid = randomUUIDv7();
  const [row] = await tx.query(statement, [credential, uid, hashKey(key), prefix, lastFour]);
  if (!row) return null;
  await tx.query(deleteOldSessions, [row.made_by]);
  const creator = { kind: 'user', uid: row.user_uid } as const;
  const proof = proofOf.get(statement);
  await recordChange(
    tx,
    { teamId: row.team_id, creator, keyId: proof === undefined ? row.made_by : null, from },
    {
      action: 'browser_session.create',
      subject: { type: 'browser_session', uid },
      ...(proof === undefined ? {} : { after: { [proof]: row.made_by } }),
    },
  );
  return { key, session: { uid, expires_at: row.expires_at, display_name: row.display_name } };
}

/** Ends the session that has this key. Returns false if no session has this key. */
export async function endBrowserSession(db: Database, principal: Principal): Promise<boolean> {
  const { keyId: uid } = principal;
  return await db.transaction(async (tx) => {
    if ((await tx.query(deleteSession, [uid])).length === 0) return false;
    await recordAction(tx, principal, { action: 'browser_session.delete', subject: { type: 'browser_session', uid } });
    return true;
  });
}

/**
 * Ends all browser sessions of all people, and unused sign-in links: in a copy of a database, they belong to browsers that use the
 * original.
 */
export async function endAllBrowserSessions(tx: Queryable): Promise<void> {
  await tx.query(deleteCodes);
  await tx.query(deleteSessions);
}

/** Ends all sessions of the person, and the sign-in links that were not used. */
export async function endBrowserSessions(db: Database, principal: Principal): Promise<void> {
  const { uid } = principal.creator;
  await db.transaction(async (tx) => {
    const [row] = await tx.query(deleteSessionsOfPerson, [uid]);
    const before = { browser_sessions: row?.count ?? 0 };
    await recordAction(tx, principal, { action: 'browser_session.delete', subject: { type: 'user', uid }, before });
  });
}
