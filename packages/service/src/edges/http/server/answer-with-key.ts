/** Answers of requests that create a key. The answer and its repetitions contain the raw key, which is not stored. */

import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { isClientAttempt, once, type RepeatableRequest } from '../../../platform/idempotency/once.ts';
import { Refusal } from '../../../platform/serving/refusal.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { seal, unseal } from '../../../team/access/keys/sealed.ts';
import { bearerToken } from './authorize.ts';

interface Request {
  readonly once: RepeatableRequest | undefined;
  readonly request: { readonly headers: { readonly authorization?: string | undefined } };
}

/**
 * Does the work, whose result has a raw `key`, once for an `Idempotency-Key`. The result is stored for repetitions together with the raw
 * key, encrypted with the caller's own key, which is not stored. Without an `Idempotency-Key` nothing is stored. `operation` names the
 * work.
 */
export async function answerWithKey(
  db: Database,
  { once: asked, request }: Request,
  operation: string,
  work: (tx: Queryable) => Promise<unknown>,
): Promise<unknown> {
  if (!asked || isClientAttempt(asked)) return await db.transaction(work);
  const { authorization = '' } = request.headers;
  const use = `answer to ${operation}, Idempotency-Key ${asked.key}`;
  const outcome = await once<{ readonly sealed: string }, Refusal>(db, asked, async (tx) => {
    const made = await work(tx);
    if (made instanceof Refusal) return { kind: 'failed', failure: made };
    const { key, ...shown } = made as { readonly key: string };
    return { kind: 'done', response: { ...shown, sealed: seal(key, bearerToken(authorization), use) } };
  });
  const answer = answerOnce(outcome, (failure) => failure);
  if (answer instanceof Refusal) return answer;
  const { sealed, ...shown } = answer;
  return { ...shown, key: unseal(sealed, bearerToken(authorization), use) };
}
