import { createHash } from 'node:crypto';
import { IdempotencyKey } from '@runyard/contract/wire/primitives';
import type { Route } from '@runyard/contract/wire/route';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ClientAttempt } from '../../../platform/idempotency/client-answers.ts';
import type { KeyedRequest, RepeatableRequest } from '../../../platform/idempotency/once.ts';
import { invalid } from '../../../platform/serving/refusal.ts';
import type { Caller } from './authorize.ts';

/** Returns the identity of a caller that all its requests share: the key of the team, or the execution of the run token. */
function callerKey({ principal, session }: Caller): Pick<KeyedRequest, 'teamId' | 'principal'> | undefined {
  if (principal) return { teamId: principal.teamId, principal: principal.keyId };
  return session ? { teamId: session.teamId, principal: session.executionId } : undefined;
}

/** Returns how often a published client has already sent this request. Undefined if another client sent the request. */
function retryCount(request: FastifyRequest): number | undefined {
  const count = request.headers['x-stainless-retry-count'];
  return typeof count === 'string' && /^\d{1,4}$/.test(count) ? Number(count) : undefined;
}

const hashOf = (...parts: readonly unknown[]): Buffer => createHash('sha256').update(JSON.stringify(parts)).digest();

/** Returns the request of a published client, whose answer is recorded until the client has received it. */
function clientAttempt(
  operation: string,
  request: FastifyRequest,
  reply: FastifyReply,
  who: Pick<KeyedRequest, 'teamId' | 'principal'>,
): ClientAttempt | undefined {
  const attempt = retryCount(request);
  if (attempt === undefined) return undefined;
  return {
    ...who,
    attempt,
    // The hash covers the body as the client sent it, including unknown members.
    requestHash: hashOf(operation, request.params, request.body ?? null),
    answer: { id: null },
    isGone: () => reply.raw.destroyed,
  };
}

/**
 * Returns the identity of a request on a route that declares `once`: its `Idempotency-Key`, or the identity of a request by a published
 * client. Undefined for other requests. Parsed bodies are compared. Throws a refusal if the key is malformed.
 */
export function repeatableRequest(
  route: Pick<Route, 'once'>,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller,
  input: { readonly params: unknown; readonly body: unknown },
): RepeatableRequest | undefined {
  const who = callerKey(caller);
  if (route.once === undefined || !who) return undefined;
  const key = request.headers['idempotency-key'];
  if (key === undefined) return clientAttempt(route.once, request, reply, who);
  const parsed = IdempotencyKey.safeParse(key);
  if (!parsed.success) {
    throw invalid(parsed.error.issues.map(({ message }) => ({ path: 'Idempotency-Key', message })));
  }
  return { ...who, key: parsed.data, requestHash: hashOf(route.once, input.params ?? {}, input.body ?? {}) };
}
