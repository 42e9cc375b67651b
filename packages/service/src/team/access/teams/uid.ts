import { randomInt } from 'node:crypto';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Returns 22 random characters of [A-Za-z0-9], which are 131 bits. The ids of environments, teams and users have this form. */
export function newUid(): string {
  return Array.from({ length: 22 }, () => alphabet[randomInt(alphabet.length)]).join('');
}

/** Returns whether the text has the form of a UID. */
export const isUid = (text: string): boolean => /^[A-Za-z0-9]{22}$/.test(text);
