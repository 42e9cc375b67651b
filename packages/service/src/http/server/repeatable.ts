import { createHash } from 'node:crypto';
import type { RepeatableRequest } from '../../idempotency/once.ts';
import { type Refusal, refuse } from './problem.ts';

/** What identifies a request with an `Idempotency-Key`; undefined without one. Bodies are compared as parsed. */
export function repeatable(
  call: { readonly idempotencyKey: string | undefined; readonly body: unknown },
  who: { readonly teamId: string; readonly principal: string },
  operation: string,
): RepeatableRequest | undefined {
  if (call.idempotencyKey === undefined) return undefined;
  const requestHash = createHash('sha256')
    .update(operation)
    .update('\n')
    .update(JSON.stringify(call.body ?? {}))
    .digest();
  return { ...who, key: call.idempotencyKey, requestHash };
}

/** 409 for a key that was used with another body. */
export const idempotencyConflict = (): Refusal =>
  refuse('conflict', { detail: 'The Idempotency-Key was used with another request; take a new key.' });
