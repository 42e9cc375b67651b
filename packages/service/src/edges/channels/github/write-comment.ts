/**
 * Writes a comment on GitHub once, and edits it in place afterwards. Each comment has a hidden marker. If the answer to its creation was
 * lost, the next attempt finds the comment by the marker.
 */
import { hash } from 'node:crypto';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { SendOutcome } from '../../../runs/subscriptions/send.ts';
import type { GithubAnswer, GithubApi, GithubAppKey, GithubRequest } from '../../../team/code-hosts/github-api.ts';
import {
  type LeasedComment,
  leaseComment,
  limitReached,
  markCommentAsked,
  maxPerDay,
  releaseComment,
  settleComment,
} from '../../../triggers/github/comments.ts';
import type { PlaceRow } from '../../../triggers/github/places.ts';
import { commentPath, scopeOf } from '../../../triggers/github/send-words.ts';

export interface WriterDeps {
  readonly db: Queryable;
  readonly api: GithubApi;
}

export interface CommentTarget {
  readonly app: GithubAppKey;
  /** Name of the account with which GitHub shows comments of the App. */
  readonly bot: string;
  readonly place: PlaceRow;
}

export interface CommentText {
  readonly text: string;
  readonly requestId: string | null;
}

export const markerOf = (key: string): string => `<!-- runyard ${key} -->`;

/** The clocks of GitHub and of the database may differ by this time. */
const clockMs = 120_000;
const perPage = 100;
/** A comment that was lost is among the first ones since the attempt. */
const maxPages = 5;

export const answered = (status: number, retryAfter?: string): SendOutcome => ({
  kind: 'answered',
  status,
  retryAfter,
});
export const failed = (error: string): SendOutcome => ({ kind: 'failed', error });

/** Returns the outcome of an answer that is no success. */
export function outcomeOf(answer: Exclude<GithubAnswer, { kind: 'ok' }>): SendOutcome {
  switch (answer.kind) {
    case 'limited':
      return answered(429, String(Math.ceil(answer.retryAfterMs / 1000)));
    case 'unavailable':
      return failed(answer.message);
    case 'refused':
      return failed(`GitHub answered ${answer.status}: ${answer.message}`.slice(0, 300));
  }
}

export const idOf = (body: unknown): number | null => {
  const id: unknown = Reflect.get(Object(body), 'id');
  return Number.isSafeInteger(id) ? (id as number) : null;
};

/**
 * Writes the comment with this key. Calls `read` while no other process writes the comment, so an older text never replaces a newer one.
 * `read` returns null if the comment is not needed any more.
 */
export async function writeComment(
  { db, api }: WriterDeps,
  { app, bot, place }: CommentTarget,
  key: string,
  read: () => Promise<CommentText | null>,
): Promise<SendOutcome> {
  const leased = await leaseComment(db, key);
  if (!leased) return failed('another process writes this comment now');
  const ask = (request: GithubRequest) => api.asInstallation(app, scopeOf(place), request);
  try {
    const wanted = await read();
    if (wanted === null) return await give(db, leased, answered(204));
    const { text, requestId } = wanted;
    const body = `${text}\n\n${markerOf(key)}`;
    const textHash = hash('sha256', body, 'buffer');
    const done = { hash: textHash, requestId };
    if (leased.is_deleted || (leased.comment_id !== null && leased.text_hash?.equals(textHash))) {
      await settleComment(db, leased, { requestId });
      return answered(200);
    }
    const isLost = leased.comment_id === null && leased.asked_at !== null;
    const lost = isLost ? await findLost(ask, listPath(place), leased, bot) : null;
    if (lost && lost.kind !== 'found') return await give(db, leased, outcomeOf(lost));
    const id = leased.comment_id ?? (lost && idOf(lost.body));
    if (id !== null) {
      const kind = place.kind === 'review_thread' ? 'review' : 'issue';
      const answer = await ask({ method: 'PATCH', path: commentPath(place, kind, id), body: { body } });
      // Somebody deleted the comment, so the service does not write it again.
      const isDeleted = answer.kind === 'refused' && (answer.status === 404 || answer.status === 410);
      if (answer.kind !== 'ok' && !isDeleted) return await give(db, leased, outcomeOf(answer));
      await settleComment(db, leased, { ...done, commentId: id, isDeleted });
      return answered(200);
    }
    const full = leased.asked_at === null ? await limitReached(db, place.id) : null;
    if (full)
      return await give(
        db,
        leased,
        failed(`the daily limit of ${maxPerDay[full]} comments for this ${full} is reached`),
      );
    if (!(await markCommentAsked(db, leased))) return failed('the attempt took too long');
    const answer = await ask({ method: 'POST', path: createPath(place), body: { body } });
    const made = answer.kind === 'ok' ? idOf(answer.body) : null;
    if (answer.kind !== 'ok') return await give(db, leased, outcomeOf(answer));
    if (made === null) return await give(db, leased, failed('GitHub named no comment'));
    await settleComment(db, leased, { ...done, commentId: made });
    return answered(201);
  } catch (error) {
    await releaseComment(db, leased);
    throw error;
  }
}

/** Ends the lease without a result. */
async function give(db: Queryable, leased: LeasedComment, outcome: SendOutcome): Promise<SendOutcome> {
  await releaseComment(db, leased);
  return outcome;
}

/** Returns the path of the list that has the comments of the place. */
export const listPath = ({ repository, kind, number }: PlaceRow): string =>
  `/repos/${repository}/${kind === 'review_thread' ? 'pulls' : 'issues'}/${number}/comments`;

export function createPath({ repository, kind, number, thread_id }: PlaceRow): string {
  return kind === 'review_thread'
    ? `/repos/${repository}/pulls/${number}/comments/${thread_id}/replies`
    : `/repos/${repository}/issues/${number}/comments`;
}

/**
 * Returns a comment or review whose creation got no answer; null: GitHub does not have it. Reads only comments since the first attempt. The
 * list of reviews has no such filter.
 */
export async function findLost(
  ask: (request: GithubRequest) => Promise<GithubAnswer>,
  list: string,
  { key, asked_at }: Pick<LeasedComment, 'key' | 'asked_at'>,
  bot: string,
): Promise<{ readonly kind: 'found'; readonly body: unknown } | null | Exclude<GithubAnswer, { kind: 'ok' }>> {
  const since = new Date(Date.parse(asked_at ?? '') - clockMs).toISOString();
  for (let page = 1; page <= maxPages; page += 1) {
    const query = new URLSearchParams({ since, per_page: String(perPage), page: String(page) });
    const answer = await ask({ method: 'GET', path: `${list}?${query}`, maxBytes: 16 * 1024 * 1024 });
    if (answer.kind !== 'ok') return answer;
    const comments = Array.isArray(answer.body) ? answer.body : [];
    // Only a comment of the App itself counts: anybody can write the marker.
    const body = comments.find(
      (each) => Object(Object(each).user).login === bot && String(Object(each).body).endsWith(markerOf(key)),
    );
    if (body) return { kind: 'found', body };
    if (comments.length < perPage) return null;
  }
  return null;
}
