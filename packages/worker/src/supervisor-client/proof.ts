import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Returns a proof that `speaker` knows the secret of a sandbox's folder. The proof does not reveal the secret. It contains the
 * speaker, so that a proof of the worker is not valid as a proof of the supervisor, and vice versa.
 */
export function proofOf(secret: string, speaker: 'worker' | 'supervisor', nonce: string): string {
  return createHmac('sha256', secret).update(`${speaker}:${nonce}`).digest('hex');
}

/** Returns true if the received proof equals the right proof. Compares in constant time. */
export function isProof(given: unknown, right: string): boolean {
  if (typeof given !== 'string') return false;
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
