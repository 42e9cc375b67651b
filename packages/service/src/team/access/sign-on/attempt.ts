/**
 * Handles a sign-in that has begun (an attempt). The browser keeps the attempt in an encrypted cookie. So the database stores nothing about
 * people who do not complete the sign-in.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { signOnMinutes } from '@runyard/contract/team/sign-on';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Checks } from './provider.ts';

export interface Attempt {
  readonly provider: string;
  /** 32 random bytes, from which state, nonce and verifier are derived. */
  readonly secret: string;
  readonly next?: string | undefined;
  readonly invitation?: string | undefined;
  /** Time at which the attempt expires, in milliseconds since 1970. */
  readonly endsAtMs: number;
}

const purpose = 'sign-on attempt';

export const newAttempt = (request: Pick<Attempt, 'provider' | 'next' | 'invitation'>, now = Date.now()): Attempt => ({
  ...request,
  secret: randomBytes(32).toString('base64url'),
  endsAtMs: now + signOnMinutes * 60_000,
});

/** Returns the values of the attempt that are sent to the provider, and that the provider returns. */
export function checksOf({ secret }: Attempt): Checks {
  const derive = (use: string) => createHmac('sha256', secret).update(use).digest('base64url');
  return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') };
}

/** Returns the encrypted attempt as the value of a cookie. */
export const sealAttempt = (vault: Vault, attempt: Attempt): string =>
  vault.seal(purpose, JSON.stringify(attempt)).toString('base64url');

/** Decrypts the attempt in a cookie; returns null if another service made the cookie, or if the attempt has expired. */
export function openAttempt(vault: Vault, cookie: string, now = Date.now()): Attempt | null {
  try {
    const attempt = JSON.parse(vault.open(purpose, Buffer.from(cookie, 'base64url'))) as Attempt;
    return attempt.endsAtMs > now ? attempt : null;
  } catch {
    return null;
  }
}
