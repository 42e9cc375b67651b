import { hash, randomBytes } from 'node:crypto';

/** Returns a new raw key with 32 random bytes. */
export const newRawKey = (): string => `ryk_${randomBytes(32).toString('base64url')}`;

/** Returns a new key of an invitation with 32 random bytes. */
export const newInvitationKey = (): string => `ryi_${randomBytes(32).toString('base64url')}`;

/** Returns the hash that the database holds of a raw key. The key is random: it needs neither salt nor stretching. */
export const hashKey = (raw: string): Buffer => hash('sha256', raw, 'buffer');

/** Returns the parts of a key that are shown after its creation. */
export function shownParts(raw: string): { prefix: string; lastFour: string } {
  return { prefix: raw.slice(0, 8), lastFour: raw.slice(-4) };
}
