import { randomInt } from 'node:crypto';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** 22 random characters of [A-Za-z0-9], 131 bits: the contract's form of environment ids, used for teams and users too. */
export function newUid(): string {
  return Array.from({ length: 22 }, () => alphabet[randomInt(alphabet.length)]).join('');
}

/** True for the form of a UID; anything else names nothing. */
export const isUid = (text: string): boolean => /^[A-Za-z0-9]{22}$/.test(text);
