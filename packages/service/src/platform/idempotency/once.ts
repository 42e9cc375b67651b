import { randomUUIDv7, timingSafeEqual } from 'node:crypto';
import { type Refusal, refuse } from '../serving/refusal.ts';
import type { Database, Queryable } from '../store/database/database.ts';
import { bytes, defineStatement, json } from '../store/database/statement.ts';
import { type ClientAttempt, lockAttempt, recordAnswer, takeAnswer } from './client-answers.ts';

const readAnswer = defineStatement({
  name: 'read_kept_answer',
  text: `
    SELECT request_hash, response FROM idempotency_keys
    WHERE team_id = $1 AND principal = $2 AND key = $3 AND created_at > now() - interval '24 hours'`,
  row: { request_hash: bytes, response: json<unknown>() },
});

const lock = defineStatement({
  name: 'lock_idempotency_key',
  text: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))',
  row: {},
});

const keepAnswer = defineStatement({
  name: 'keep_answer',
  text: `
    INSERT INTO idempotency_keys (team_id, principal, key, request_hash, status, response) VALUES ($1, $2, $3, $4, 200, $5)
    ON CONFLICT (team_id, principal, key) DO UPDATE
      SET request_hash = excluded.request_hash, response = excluded.response, created_at = now()`,
  row: {},
});

/** A request with an `Idempotency-Key`. `principal` separates the keys of different callers. */
export interface KeyedRequest {
  readonly teamId: string;
  readonly principal: string;
  readonly key: string;
  readonly requestHash: Buffer;
}

/** A request that its sender may repeat. */
export type RepeatableRequest = KeyedRequest | ClientAttempt;

/** Returns whether the request comes from a published client and has a count of earlier attempts instead of a key. */
export const isClientAttempt = (request: RepeatableRequest | undefined): request is ClientAttempt =>
  request !== undefined && 'attempt' in request;

/** `conflict`: the key was used with a different request, so the answer is 409. */
export type ReplayOutcome<T> =
  | { readonly kind: 'replayed'; readonly response: T }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'new' };

/**
 * Finds the answer to a request with the same key in the last 24 hours. For a request of a published client, finds the answer to an
 * earlier attempt if the client may not have received that answer.
 */
export async function findReplay<T>(db: Queryable, request: RepeatableRequest): Promise<ReplayOutcome<T>> {
  if (isClientAttempt(request)) {
    const lost = await takeAnswer<T>(db, request);
    return lost ? { kind: 'replayed', response: lost.response } : { kind: 'new' };
  }
  const [row] = await db.query(readAnswer, [request.teamId, request.principal, request.key]);
  if (!row) return { kind: 'new' };
  if (!timingSafeEqual(row.request_hash, request.requestHash)) return { kind: 'conflict' };
  return { kind: 'replayed', response: row.response as T };
}

/** Locks the request until the transaction ends. A concurrent repetition of the request waits. */
async function lockKey(tx: Queryable, request: RepeatableRequest): Promise<void> {
  if (isClientAttempt(request)) return await lockAttempt(tx, request);
  await tx.query(lock, [`idempotency ${request.teamId} ${request.principal} ${request.key}`]);
}

/** The result of the work: an answer, which is stored with its key, or a refusal, which is not stored. */
export type Attempt<T, F> =
  | { readonly kind: 'done'; readonly response: T }
  | { readonly kind: 'failed'; readonly failure: F };

/**
 * Does `work` only once for each key, and records the answer in the same transaction. If two requests with the same key are
 * concurrent, the second request waits and returns the answer of the first request. If `request` is undefined, every call does the
 * work.
 */
export async function once<T, F>(
  db: Database,
  request: RepeatableRequest | undefined,
  work: (tx: Queryable) => Promise<Attempt<T, F>>,
): Promise<Attempt<T, F> | { readonly kind: 'conflict' }> {
  return await db.transaction((tx) => onceWithin(tx, request, work));
}

/** Does the same as `once`, in the transaction of the caller. */
export async function onceWithin<T, F>(
  tx: Queryable,
  request: RepeatableRequest | undefined,
  work: (tx: Queryable) => Promise<Attempt<T, F>>,
): Promise<Attempt<T, F> | { readonly kind: 'conflict' }> {
  if (!request) return await work(tx);
  await lockKey(tx, request);
  const earlier = await findReplay<T>(tx, request);
  if (earlier.kind === 'conflict') return earlier;
  if (earlier.kind === 'replayed') return { kind: 'done', response: earlier.response };
  // Do not do the work: the client has closed the connection and may repeat the request on another connection. The client does not read
  // the answer of this request.
  if (isClientAttempt(request) && request.isGone()) return { kind: 'conflict' };
  const attempt = await work(tx);
  if (attempt.kind === 'failed') return attempt;
  if (isClientAttempt(request)) {
    await recordAnswer(tx, request, randomUUIDv7(), attempt.response);
    return attempt;
  }
  const { teamId, principal, key, requestHash } = request;
  await tx.query(keepAnswer, [teamId, principal, key, requestHash, JSON.stringify(attempt.response)]);
  return attempt;
}

/** Returns the 409 refusal of a key that was used with another body. */
export const idempotencyConflict = (): Refusal =>
  refuse('conflict', { detail: 'The Idempotency-Key was used with another request; take a new key.' });

/** Converts a result of `once` to an answer or a refusal. */
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
