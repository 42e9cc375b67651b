import { createHash } from 'node:crypto';
import { IdempotencyKey } from '@runyard/contract/primitives';
import type { Route } from '@runyard/contract/route';
import type { FastifyRequest } from 'fastify';
import type { Attempt, RepeatableRequest } from '../../idempotency/once.ts';
import type { Caller } from './authorize.ts';
import { invalid, type Refusal, refuse } from './problem.ts';

/** Identifies a caller between its requests: a key of the team, or the execution of a run token. */
function callerKey({ principal, session }: Caller): Pick<RepeatableRequest, 'teamId' | 'principal'> | undefined {
  if (principal) return { teamId: principal.teamId, principal: principal.keyId };
  return session ? { teamId: session.teamId, principal: session.executionId } : undefined;
}

/**
 * Returns what identifies a request with an `Idempotency-Key` on a route that declares `once`; undefined without one.
 * Bodies are compared as parsed. Throws the refusal of a malformed key.
 */
export function repeatableRequest(
  route: Pick<Route, 'once'>,
  request: FastifyRequest,
  caller: Caller,
  input: { readonly params: unknown; readonly body: unknown },
): RepeatableRequest | undefined {
  const who = callerKey(caller);
  const key = route.once ? request.headers['idempotency-key'] : undefined;
  if (key === undefined || !who) return undefined;
  const parsed = IdempotencyKey.safeParse(key);
  if (!parsed.success) {
    throw invalid(parsed.error.issues.map(({ message }) => ({ path: 'Idempotency-Key', message })));
  }
  const requestHash = createHash('sha256')
    .update(JSON.stringify([route.once, input.params ?? {}, input.body ?? {}]))
    .digest();
  return { ...who, key: parsed.data, requestHash };
}

/** 409 for a key that was used with another body. */
export const idempotencyConflict = (): Refusal =>
  refuse('conflict', { detail: 'The Idempotency-Key was used with another request; take a new key.' });

/** Translates the outcome of work that was done once: its answer, or why there is none. */
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
