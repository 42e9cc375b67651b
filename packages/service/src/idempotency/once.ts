import { timingSafeEqual } from 'node:crypto';
import type { Database, Queryable } from '../store/database/database.ts';

/** A request that its sender may repeat. `principal` keeps one caller's keys from another's. */
export interface RepeatableRequest {
  readonly teamId: string;
  readonly principal: string;
  readonly key: string;
  readonly requestHash: Buffer;
}

/** `conflict`: the key was used with another request (409). */
export type ReplayOutcome<T> =
  | { readonly kind: 'replayed'; readonly response: T }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'new' };

/** The answer to an earlier request with the same key within 24 h, where there is one. */
export async function findReplay<T>(db: Queryable, request: RepeatableRequest): Promise<ReplayOutcome<T>> {
  const [row] = await db.query<{ request_hash: Buffer; response: T }>(
    `SELECT request_hash, response FROM idempotency_keys
     WHERE team_id = $1 AND principal = $2 AND key = $3 AND created_at > now() - interval '24 hours'`,
    [request.teamId, request.principal, request.key],
  );
  if (!row) return { kind: 'new' };
  if (!timingSafeEqual(row.request_hash, request.requestHash)) return { kind: 'conflict' };
  return { kind: 'replayed', response: row.response };
}

/** Until the transaction ends nobody else's request with this key is looked at: of two at once the second waits. */
async function lockKey(tx: Queryable, request: RepeatableRequest): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `idempotency ${request.teamId} ${request.principal} ${request.key}`,
  ]);
}

/** An answer to keep with its key, or a refusal, which is not kept. */
export type Attempt<T, F> =
  | { readonly kind: 'done'; readonly response: T }
  | { readonly kind: 'failed'; readonly failure: F };

/**
 * Does `work` in one transaction with the record of its answer, once for each key. Of two requests at once the second
 * waits for the first. Without a request every call does the work.
 */
export async function once<T, F>(
  db: Database,
  request: RepeatableRequest | undefined,
  work: (tx: Queryable) => Promise<Attempt<T, F>>,
): Promise<Attempt<T, F> | { readonly kind: 'conflict' }> {
  return await db.transaction((tx) => onceWithin(tx, request, work));
}

/** Does the same in a transaction of the caller, which commits work and answer together. */
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
  const attempt = await work(tx);
  if (attempt.kind === 'failed') return attempt;
  await tx.query(
    `INSERT INTO idempotency_keys (team_id, principal, key, request_hash, status, response) VALUES ($1, $2, $3, $4, 200, $5)
     ON CONFLICT (team_id, principal, key) DO UPDATE
       SET request_hash = excluded.request_hash, response = excluded.response, created_at = now()`,
    [request.teamId, request.principal, request.key, request.requestHash, JSON.stringify(attempt.response)],
  );
  return attempt;
}
