import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Queryable } from '../../store/database/database.ts';

/** Signs what goes out and comes back: cursors and URLs. The same key in all service processes. */
export interface Signer {
  /** 256-bit signature as base64url. `purpose` keeps one use's signatures from another's. */
  sign(purpose: string, text: string): string;
  /** Compares in constant time. */
  verify(purpose: string, text: string, signature: string): boolean;
}

/** A signer with the given key of 32 bytes. */
function makeSigner(key: Buffer): Signer {
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

/** The signer of this database; the first process that asks makes the key. */
export async function loadSigner(db: Queryable): Promise<Signer> {
  await db.query(`INSERT INTO server_secrets (name, value) VALUES ('signing', $1) ON CONFLICT (name) DO NOTHING`, [
    randomBytes(32),
  ]);
  const [row] = await db.query<{ value: Buffer }>(`SELECT value FROM server_secrets WHERE name = 'signing'`);
  if (!row) throw new Error('the signing key is not in server_secrets');
  return makeSigner(row.value);
}
