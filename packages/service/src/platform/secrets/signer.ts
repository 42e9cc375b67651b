import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Queryable } from '../store/database/database.ts';
import { bytes, defineStatement } from '../store/database/statement.ts';

/** Signs cursors and URLs, so that clients cannot change them. All service processes have the same key. */
export interface Signer {
  /** Returns a 256-bit signature as base64url. A signature for one `purpose` is wrong for every other purpose. */
  sign(purpose: string, text: string): string;
  /** Returns whether the signature is right. Compares in constant time. */
  verify(purpose: string, text: string, signature: string): boolean;
}

/** Makes a signer that uses a key of 32 bytes. */
function makeSigner(key: KeyObject): Signer {
  const digest = (purpose: string, text: string) =>
    createHmac('sha256', key).update(`${purpose.length}:${purpose}`).update(text).digest();
  return {
    sign: (purpose, text) => digest(purpose, text).toString('base64url'),
    verify: (purpose, text, signature) => {
      const given = Buffer.from(signature, 'base64url');
      const right = digest(purpose, text);
      return given.length === right.length && timingSafeEqual(given, right);
    },
  };
}

const readKey = defineStatement({
  name: 'read_signing_key',
  text: `SELECT value FROM server_secrets WHERE name = 'signing'`,
  row: { value: bytes },
});

/** Returns the signer of this database. The first process that calls it creates the key. */
export async function loadSigner(db: Queryable): Promise<Signer> {
  await db.query(`INSERT INTO server_secrets (name, value) VALUES ('signing', $1) ON CONFLICT (name) DO NOTHING`, [
    randomBytes(32),
  ]);
  const [row] = await db.query(readKey);
  if (!row) throw new Error('the signing key is not in server_secrets');
  return makeSigner(createSecretKey(row.value));
}
