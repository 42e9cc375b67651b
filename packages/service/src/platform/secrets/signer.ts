import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Queryable } from '../store/database/database.ts';
import { bytes, defineStatement } from '../store/database/statement.ts';
import type { Vault } from './vault.ts';

/**
 * Signs cursors and URLs, so that clients cannot change them. All service processes have the same keys. The keys are derived from the
 * secrets key, the id of the installation and the week, so they are in no backup, a restored copy has other keys, and a key signs for a
 * week at most.
 */
export interface Signer {
  /** Returns a 256-bit signature as base64url. A signature for one `purpose` is wrong for every other purpose. */
  sign(purpose: string, text: string): string;
  /** Returns whether the signature is right and at most two weeks old. Compares in constant time. */
  verify(purpose: string, text: string, signature: string): boolean;
  /** Returns a name of 256 bits as base64url that only the service can compute. It changes only with the secrets key. */
  nameOf(purpose: string, text: string): string;
}

const weekMs = 7 * 24 * 60 * 60 * 1000;

/** A database of an earlier version has a key in this row. The nightly sweep deletes the row. */
const readEarlierKey = defineStatement({
  name: 'read_earlier_signing_key',
  text: `SELECT value FROM server_secrets WHERE name = 'signing'`,
  row: { value: bytes },
});

/** Deletes the key of an earlier version. */
export const earlierSigningKey = { table: 'server_secrets', isOver: "name = 'signing'" } as const;

/** During an upgrade, processes of the earlier version sign with the key in the database. This process accepts it for an hour. */
const earlierKeyMs = 60 * 60 * 1000;

/** Returns the signer of the installation with this id. `now` returns milliseconds since 1970. */
export async function openSigner(
  db: Queryable,
  vault: Vault,
  id: string,
  now: () => number = Date.now,
): Promise<Signer> {
  const [earlier] = await db.query(readEarlierKey);
  const earlierUntil = now() + earlierKeyMs;
  const digest = (key: Buffer, purpose: string, text: string) =>
    createHmac('sha256', key).update(`${purpose.length}:${purpose}`).update(text).digest();
  const keysOf = (week: number) => vault.derive(`sign ${id} ${week}`);
  return {
    // The earliest key of the vault signs, because after a rotation not all processes have read the new key yet.
    sign: (purpose, text) => digest(keysOf(Math.floor(now() / weekMs))[0], purpose, text).toString('base64url'),
    verify: (purpose, text, signature) => {
      const given = Buffer.from(signature, 'base64url');
      const week = Math.floor(now() / weekMs);
      // The next week is accepted too, because the clock of another process may be ahead.
      const keys = [week, week - 1, week + 1].flatMap((each) => [...keysOf(each)]);
      if (earlier && now() < earlierUntil) keys.push(earlier.value);
      return keys.some((key) => {
        const right = digest(key, purpose, text);
        return given.length === right.length && timingSafeEqual(given, right);
      });
    },
    nameOf: (purpose, text) => digest(vault.derive(`name ${id}`)[0], purpose, text).toString('base64url'),
  };
}
