/**
 * Comments of people that continue a run. A loop sends each comment to its run after GitHub has confirmed the author, because the owner of
 * the App on GitHub could sign an event in the name of another account.
 */
import type { RowRule } from '../../platform/domain.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, type RowOf, text, uuid } from '../../platform/store/database/statement.ts';
import { idAt } from '../../platform/store/database/uuid.ts';

/** A comment that continues a run. */
export interface NewWord {
  readonly placeId: string;
  readonly runId: string;
  readonly commentKind: 'issue' | 'review';
  readonly commentId: number;
  readonly githubId: number;
  readonly userUid: string;
  readonly message: string;
}

/** Stores the id of the request that the run's comment shows, because the person answers this request. */
const insert = defineStatement({
  name: 'insert_github_word',
  text: `
    INSERT INTO github_words (place_id, run_id, comment_kind, comment_id, github_id, user_uid, message, request_id)
    VALUES ($1, $2::uuid, $3, $4, $5, $6, $7, (SELECT request_id FROM github_comments WHERE key = $2::uuid))
    ON CONFLICT (place_id, comment_kind, comment_id) DO NOTHING RETURNING id`,
  row: { id: uuid },
});

const countRecent = defineStatement({
  name: 'count_recent_github_words',
  text: `
    SELECT count(*) AS count FROM github_words WHERE run_id = $1 AND created_at > clock_timestamp() - interval '1 hour'`,
  row: { count: integer },
});

/** Largest number of comments that continue one run in an hour. */
const maxPerHour = 60;

/** Records a comment for a run; a comment that is known already changes nothing. `full`: the run got too many comments. */
export async function recordWord(tx: Queryable, word: NewWord): Promise<'recorded' | 'full'> {
  const [recent] = await tx.query(countRecent, [word.runId]);
  if ((recent?.count ?? 0) >= maxPerHour) return 'full';
  const { placeId, runId, commentKind, commentId, githubId, userUid, message } = word;
  await tx.query(insert, [placeId, runId, commentKind, commentId, githubId, userUid, message]);
  return 'recorded';
}

/** Finds a comment that is due. */
export const dueWords = defineStatement({
  name: 'find_due_github_words',
  text: `SELECT FROM github_words WHERE status = 'pending' AND next_attempt_at <= now() LIMIT 1`,
  row: {},
});

/** A comment that was begun and not finished is due again after the lease. The comments of a run keep their order. */
const claim = defineStatement({
  name: 'claim_github_words',
  text: `
    UPDATE github_words w SET attempts = attempts + 1, next_attempt_at = clock_timestamp() + interval '60 seconds'
    WHERE id IN (
      SELECT id FROM github_words d WHERE status = 'pending' AND next_attempt_at <= clock_timestamp()
        AND NOT EXISTS (SELECT FROM github_words e WHERE e.run_id = d.run_id AND e.status = 'pending' AND e.id < d.id)
      ORDER BY next_attempt_at LIMIT 10 FOR UPDATE SKIP LOCKED)
    RETURNING w.id, w.place_id, w.run_id, w.comment_kind, w.comment_id, w.github_id, w.user_uid, w.message, w.request_id, w.attempts,
      extract(epoch FROM clock_timestamp() - w.created_at)::integer AS age_seconds`,
  row: {
    id: uuid,
    place_id: uuid,
    run_id: uuid,
    comment_kind: text<NewWord['commentKind']>(),
    comment_id: integer,
    github_id: integer,
    user_uid: text(),
    message: nullable(text()),
    request_id: nullable(text()),
    attempts: integer,
    age_seconds: integer,
  },
});

export type ClaimedWord = RowOf<typeof claim>;
export const claimWords = (db: Queryable): Promise<ClaimedWord[]> => db.query(claim);

const settle = defineStatement({
  name: 'settle_github_word',
  text: `UPDATE github_words SET status = $3, message = NULL WHERE id = $1 AND attempts = $2 AND status = 'pending' RETURNING id`,
  row: { id: uuid },
});

/** Records that a comment was sent to its run, or refused. Returns false if another process has begun a later attempt. */
export const settleWord = async (
  tx: Queryable,
  { id, attempts }: Pick<ClaimedWord, 'id' | 'attempts'>,
  status: 'sent' | 'refused',
): Promise<boolean> => (await tx.query(settle, [id, attempts, status])).length === 1;

const delay = defineStatement({
  name: 'delay_github_word',
  text: `
    UPDATE github_words SET next_attempt_at = clock_timestamp() + make_interval(secs => $3)
    WHERE id = $1 AND attempts = $2 AND status = 'pending'`,
  row: {},
});

export const delayWord = async (db: Queryable, { id, attempts }: ClaimedWord, seconds: number): Promise<void> => {
  await db.query(delay, [id, attempts, seconds]);
};

const readSenders = defineStatement({
  name: 'read_senders_of_github_words',
  text: `SELECT DISTINCT github_id FROM github_words WHERE run_id = $1 AND status = 'sent' LIMIT 50`,
  row: { github_id: integer },
});

/** Returns the accounts whose comments the run has got. */
export const readSendersOf = async (db: Queryable, runId: string): Promise<number[]> =>
  (await db.query(readSenders, [runId])).map(({ github_id: id }) => id);

/** Comments that were sent or refused long ago. The order of the ids is the order of time. */
export const oldWords: RowRule = { table: 'github_words', isOver: `id < ${idAt('30 days')} AND status <> 'pending'` };
