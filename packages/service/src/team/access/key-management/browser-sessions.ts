/** Signs in browsers: a person's key mints a one-time code, a page exchanges it for the key of a session. */
import { randomBytes, randomUUIDv7 } from 'node:crypto';
import {
  type BrowserSession,
  browserSessionHours,
  type CreateSignInCodeResponse,
  signInCodeSeconds,
} from '@runyard/contract/team/browser-sessions';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, text, timestamp, uuid } from '../../../platform/store/database/statement.ts';
import { recordAction } from '../audit/record.ts';
import { hashKey, isValidKeyIn, keysChannel, newRawKey, shownParts } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';

/** Largest number of codes and sessions of one key. A further one replaces the oldest. */
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

/**
 * Deleting the code is the compare-and-set that allows only one use. The lock puts the exchange in an order with the
 * deletion of the key that created the code, which also deletes the session.
 */
const useCode = defineStatement({
  name: 'use_sign_in_code',
  text: `
    WITH used AS (DELETE FROM sign_in_codes WHERE hash = $1 AND expires_at > clock_timestamp() RETURNING key_id, team_id)
    INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four, expires_at, minted_by)
    SELECT $2, $3, 'personal', 'Browser session', coalesce(used.team_id, k.team_id), k.user_id, $4, $5,
      least(k.expires_at, now() + interval '${browserSessionHours} hours'), k.id
    FROM used JOIN api_keys k ON k.id = used.key_id
    WHERE k.kind = 'personal' AND k.minted_by IS NULL AND ${isValidKeyIn('k', 'coalesce(used.team_id, k.team_id)')}
    FOR KEY SHARE OF k
    RETURNING team_id, expires_at, minted_by, (SELECT u.uid FROM users u WHERE u.id = user_id) AS user_uid,
      (SELECT u.display_name FROM users u WHERE u.id = user_id) AS display_name`,
  row: { team_id: uuid, expires_at: timestamp, minted_by: uuid, user_uid: text(), display_name: text() },
});

const deleteOldSessions = defineStatement({
  name: 'delete_old_browser_sessions',
  text: `
    DELETE FROM api_keys WHERE minted_by IS NOT NULL AND (expires_at <= clock_timestamp()
      OR id IN (SELECT id FROM api_keys WHERE minted_by = $1 ORDER BY created_at DESC, id DESC OFFSET ${maxSessions}))`,
  row: {},
});

const deleteSession = defineStatement({
  name: 'delete_browser_session',
  text: `
    WITH gone AS (DELETE FROM api_keys WHERE id = $1 AND minted_by IS NOT NULL RETURNING id)
    SELECT pg_notify('${keysChannel}', id::text) FROM gone`,
  row: {},
});

/** Creates a code for the person of the key. Only the result holds the code. */
export async function createSignInCode(db: Database, { keyId, teamId }: Principal): Promise<CreateSignInCodeResponse> {
  const code = randomBytes(32).toString('base64url');
  return await db.transaction(async (tx) => {
    await tx.query(deleteOldCodes, [keyId]);
    const [row] = await tx.query(insertCode, [hashKey(code), keyId, teamId]);
    if (!row) throw new Error('the code was not inserted');
    return { code, expires_at: row.expires_at };
  });
}

/** Exchanges the code for a session. Null: it was used, has expired, is unknown, or its key has ended. */
export async function createBrowserSession(
  db: Database,
  code: string,
  from: RequestOrigin | null,
): Promise<BrowserSession | null> {
  const key = newRawKey();
  const { prefix, lastFour } = shownParts(key);
  return await db.transaction(async (tx) => {
    const id = randomUUIDv7();
    const [row] = await tx.query(useCode, [hashKey(code), id, hashKey(key), prefix, lastFour]);
    if (!row) return null;
    await tx.query(deleteOldSessions, [row.minted_by]);
    const by = {
      teamId: row.team_id,
      creator: { kind: 'user', uid: row.user_uid },
      keyId: row.minted_by,
      from,
    } as const;
    await recordAction(tx, by, { action: 'browser_session.create', subject: { type: 'browser_session', uid: id } });
    return { key, expires_at: row.expires_at, display_name: row.display_name };
  });
}

/** Ends the session whose key this is. False: it is the key of no session. */
export async function endBrowserSession(db: Database, principal: Principal): Promise<boolean> {
  const { keyId: uid } = principal;
  return await db.transaction(async (tx) => {
    if ((await tx.query(deleteSession, [uid])).length === 0) return false;
    await recordAction(tx, principal, { action: 'browser_session.delete', subject: { type: 'browser_session', uid } });
    return true;
  });
}
