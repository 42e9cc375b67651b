import { createHmac, timingSafeEqual } from 'node:crypto';

/** Proves that the sender knows the secret of a supervisor, without sending it. A proof of one side is not valid for the other. */
export function proofOf(secret: string, speaker: 'worker' | 'supervisor', nonce: string): string {
  return createHmac('sha256', secret).update(`${speaker}:${nonce}`).digest('hex');
}

/** Compares a proof that was received with the right one. */
export function isProof(given: unknown, right: string): boolean {
  if (typeof given !== 'string') return false;
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
