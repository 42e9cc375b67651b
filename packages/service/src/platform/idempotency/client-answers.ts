/**
 * Answers that a published client may not have received. If such a client gets no answer, it repeats the request by itself. The repeat
 * has a greater `X-Stainless-Retry-Count`, but no `Idempotency-Key`. The repeat gets the answer of the earlier request only if the
 * client may not have received that answer. So two separate requests with the same body are not treated as one request.
 */
import { batched } from '../store/database/batched.ts';
import type { Database, Queryable } from '../store/database/database.ts';
import { defineStatement, json, uuid } from '../store/database/statement.ts';

/** A request of a published client. `attempt`: how often the client has sent it before. */
export interface ClientAttempt {
  readonly teamId: string;
  readonly principal: string;
  readonly requestHash: Buffer;
  /** 0: the request is not a repeat. */
  readonly attempt: number;
  /**
   * Id of the recorded answer; null while there is no answer. The code that records the answer sets this id. The caller passes the id
   * to `noteSent` when it has sent the answer.
   */
  readonly answer: { id: string | null };
  /** Returns whether the client has closed the connection. If so, the client repeats the request or has given up. */
  isGone(): boolean;
}

/** Seconds within which a client repeats a request if its connection broke right after the answer. The longest backoff of a client is 8 s. */
const repeatSeconds = 10;

const lockName = (team: string, principal: string, hash: string): string =>
  `hashtextextended(concat_ws(' ', 'client answer', ${team}, ${principal}, ${hash}), 0)`;

const lockForFirst = defineStatement({
  name: 'lock_client_answer_shared',
  text: `SELECT pg_advisory_xact_lock_shared(${lockName('$1::text', '$2::text', '$3::text')})`,
  row: {},
});

const lockForRepeat = defineStatement({
  name: 'lock_client_answer',
  text: `SELECT pg_advisory_xact_lock(${lockName('$1::text', '$2::text', '$3::text')})`,
  row: {},
});

/**
 * Locks the request until the transaction ends. A repeat waits until requests with the same body have ended, so that it finds their
 * answer. Requests that are not repeats do not wait for each other.
 */
export async function lockAttempt(
  tx: Queryable,
  { teamId, principal, requestHash, attempt }: ClientAttempt,
): Promise<void> {
  await tx.query(attempt > 0 ? lockForRepeat : lockForFirst, [teamId, principal, requestHash.toString('hex')]);
}

/**
 * Returns one stored answer at most once for each retry number. So if a client repeats two requests with the same body, the two
 * repeats get different answers.
 * Selects an answer only if the client may not have received it: the service did not send it, sent it after the repeat had arrived, or
 * noticed that the client closed the connection right after the answer.
 */
const take = defineStatement({
  name: 'take_client_answer',
  text: `
    UPDATE client_answers SET attempt = $4, sent_at = NULL, closed_at = NULL
    WHERE id = (
      SELECT id FROM client_answers
      WHERE team_id = $1 AND principal = $2 AND request_hash = $3 AND attempt < $4 AND created_at > now() - interval '10 minutes'
        AND (sent_at IS NULL OR sent_at > now() OR closed_at > now() - interval '${repeatSeconds} seconds')
      ORDER BY attempt DESC, created_at LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING id, response`,
  row: { id: uuid, response: json<unknown>() },
});

/**
 * Returns the answer of the earlier request that this request repeats. Returns null if this request is not a repeat or the client has
 * received the answer.
 */
export async function takeAnswer<T>(db: Queryable, request: ClientAttempt): Promise<{ readonly response: T } | null> {
  if (request.attempt === 0) return null;
  const [row] = await db.query(take, [request.teamId, request.principal, request.requestHash, request.attempt]);
  if (!row) return null;
  request.answer.id = row.id;
  return { response: row.response as T };
}

const insert = defineStatement({
  name: 'insert_client_answer',
  text: `INSERT INTO client_answers (id, team_id, principal, request_hash, attempt, response) VALUES ($1, $2, $3, $4, $5, $6)`,
  row: {},
});

/** Records an answer in the transaction that did the work of the request. The caller has called `lockAttempt` before. */
export async function recordAnswer(
  tx: Queryable,
  request: ClientAttempt,
  id: string,
  response: unknown,
): Promise<void> {
  const { teamId, principal, requestHash, attempt } = request;
  await tx.query(insert, [id, teamId, principal, requestHash, attempt, JSON.stringify(response)]);
  request.answer.id = id;
}

/**
 * Returns the SQL of two common table expressions. The first one locks requests that are not repeats. The second one records the
 * answers of these requests.
 * `relation` names a relation with the columns `team_id`, `answer_id` (null: nothing to record), `answer_principal`, `answer_hash` (hexadecimal)
 * and `answer`.
 */
export const recordFirstAnswers = (relation: string): string => `
    answer_lock AS MATERIALIZED (
      SELECT count(pg_advisory_xact_lock_shared(${lockName('r.team_id', 'r.answer_principal', 'r.answer_hash')})) AS locks
      FROM ${relation} r WHERE r.answer_id IS NOT NULL
    ), answer AS (
      INSERT INTO client_answers (id, team_id, principal, request_hash, attempt, response)
      SELECT r.answer_id, r.team_id, r.answer_principal, decode(r.answer_hash, 'hex'), 0, r.answer
      FROM ${relation} r, answer_lock WHERE r.answer_id IS NOT NULL
    )`;

const markSent = defineStatement({
  name: 'mark_client_answers_sent',
  text: 'UPDATE client_answers SET sent_at = now() WHERE id = ANY ($1::uuid[])',
  row: {},
});

const markClosed = defineStatement({
  name: 'mark_client_answer_closed',
  text: 'UPDATE client_answers SET closed_at = now() WHERE id = $1',
  row: {},
});

/** Records that an answer was written to its connection. */
export const noteSent: (db: Database, id: string) => Promise<void> = batched<Database, string>(500, async (db, ids) => {
  await db.query(markSent, [ids]);
});

/** Records that the client closed the connection right after the answer was written, so the client may not have read it. */
export async function noteClosed(db: Database, id: string): Promise<void> {
  await db.query(markClosed, [id]);
}
