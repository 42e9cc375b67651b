import { hash, randomBytes } from 'node:crypto';

/** A new raw key: 32 random bytes. */
export const newRawKey = (): string => `ryk_${randomBytes(32).toString('base64url')}`;

/** What the database holds of a raw key: it is random, so that neither salt nor stretching is needed. */
export const hashKey = (raw: string): Buffer => hash('sha256', raw, 'buffer');

/** What is shown of a key after its creation. Nothing of one that is too short to hide the rest. */
export function shownParts(raw: string): { prefix: string; lastFour: string } {
  return { prefix: raw.slice(0, 8), lastFour: raw.slice(-4) };
}
