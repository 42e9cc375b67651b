/** Answers of requests that create a key. The answer and its repetitions contain the raw key, which is not stored. */

import { isClientAttempt, once, type RepeatableRequest } from '../../../platform/idempotency/once.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { seal, unseal } from '../../../team/access/keys/sealed.ts';
import { bearerToken } from './authorize.ts';
import { Refusal } from './problem.ts';
import { answerOnce } from './repeatable.ts';

interface Creation<T extends { readonly key: string }, F extends string> {
  /** Name of the operation. */
  readonly operation: string;
  readonly work: (tx: Queryable) => Promise<T | F>;
  readonly refuseFailure: (failure: F) => Refusal;
}

interface Request {
  readonly once: RepeatableRequest | undefined;
  readonly request: { readonly headers: { readonly authorization?: string | undefined } };
}

/**
 * Does the work once for an `Idempotency-Key`. The answer is stored for repetitions together with the raw key, encrypted with the
 * caller's own key, which is not stored. Without an `Idempotency-Key` nothing is stored.
 */
export async function answerWithKey<T extends { readonly key: string }, F extends string>(
  db: Database,
  { once: asked, request }: Request,
  { operation, work, refuseFailure }: Creation<T, F>,
): Promise<T | Refusal> {
  if (!asked || isClientAttempt(asked)) {
    const made = await db.transaction(work);
    return typeof made === 'string' ? refuseFailure(made) : made;
  }
  const { authorization = '' } = request.headers;
  const use = `answer to ${operation}, Idempotency-Key ${asked.key}`;
  const outcome = await once<Omit<T, 'key'> & { readonly sealed: string }, F>(db, asked, async (tx) => {
    const made = await work(tx);
    if (typeof made === 'string') return { kind: 'failed', failure: made };
    const { key, ...shown } = made;
    return { kind: 'done', response: { ...shown, sealed: seal(key, bearerToken(authorization), use) } };
  });
  const answer = answerOnce(outcome, refuseFailure);
  if (answer instanceof Refusal) return answer;
  const { sealed, ...shown } = answer;
  return { ...shown, key: unseal(sealed, bearerToken(authorization), use) } as unknown as T;
}
