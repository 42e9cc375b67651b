import { type Refusal, refuse } from '../serving/refusal.ts';
import type { Attempt } from './once.ts';

/** 409 for a key that was used with another body. */
export const idempotencyConflict = (): Refusal =>
  refuse('conflict', { detail: 'The Idempotency-Key was used with another request; take a new key.' });

/** Converts the outcome of work that was done once: its answer, or the reason why there is none. */
export function answerOnce<T, F>(
  outcome: Attempt<T, F> | { readonly kind: 'conflict' },
  refuseFailure: (failure: F) => Refusal,
): T | Refusal {
  switch (outcome.kind) {
    case 'done':
      return outcome.response;
    case 'failed':
      return refuseFailure(outcome.failure);
    case 'conflict':
      return idempotencyConflict();
  }
}
