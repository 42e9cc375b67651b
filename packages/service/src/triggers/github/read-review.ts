/** Makes one event of a submitted review and its comments on lines. GitHub sends an event for the review, and one for each comment. */
import { type AskDeps, askForPlace } from './ask-place.ts';
import type { WholeEvent } from './complete-event.ts';
import type { InstallationRow } from './installations.ts';
import { readPlace, recordPlace } from './places.ts';
import { type AppEvent, at, readAppEvent, textOf } from './read-event.ts';

/** Only the first comments of a review are read. */
const perPage = 100;
/** Characters of one text. */
const maxText = 8 * 1024;

/** Returns whether the event is a submitted review, whose comments the service reads. */
export const isReview = ({ name, action }: AppEvent): boolean =>
  name === 'pull_request_review' && action === 'submitted';

/** Returns whether the event is a comment that begins a thread as part of a review. The event of its review has it too. */
export const isPartOfReview = ({ name, action }: AppEvent, payload: unknown): boolean =>
  name === 'pull_request_review_comment' &&
  action === 'created' &&
  at(payload, 'comment', 'in_reply_to_id') == null &&
  at(payload, 'comment', 'pull_request_review_id') != null;

/**
 * Reads the comments of a review. Replies in other threads are left out, because each of them is an event of its own. A review that is only one
 * comment belongs to the thread of this comment. `away`: GitHub does not answer now. Null: the event names no review.
 */
export async function readReview(
  deps: AskDeps,
  { uid }: InstallationRow,
  { name, text, place }: AppEvent,
  payload: unknown,
): Promise<WholeEvent | 'away' | null> {
  if (text === null || place === null) return null;
  const row = await readPlace(deps.db, await recordPlace(deps.db, uid, place));
  if (row === null) return 'away';
  const path = `/repos/${row.repository}/pulls/${row.number}/reviews/${text.id}/comments?per_page=${perPage}`;
  const answer = await askForPlace(deps, row, { pull_requests: 'read' }, { method: 'GET', path });
  if (answer.kind === 'unavailable' || answer.kind === 'limited') return 'away';
  const read = answer.kind === 'ok' && Array.isArray(answer.body) ? answer.body : [];
  const comments = read
    .filter((each) => at(each, 'in_reply_to_id') == null)
    .map((each) => ({
      id: at(each, 'id'),
      path: at(each, 'path'),
      line: at(each, 'line') ?? null,
      diff_hunk: textOf(at(each, 'diff_hunk')).slice(-maxText),
      body: textOf(at(each, 'body')).slice(0, maxText),
    }));
  const isCut = answer.kind === 'ok' && answer.next !== undefined;
  const cut = isCut ? { comments_cut: `only the first ${perPage} comments are here` } : {};
  const review = { ...Object(at(payload, 'review')), comments, ...cut };
  const whole = { ...Object(payload), review };
  const event = readAppEvent(name, whole);
  if (event === null) return null;
  const [only] = comments;
  const isOne = text.body.trim() === '' && comments.length === 1 && typeof only?.id === 'number';
  const thread = isOne ? { kind: 'review_thread' as const, threadId: Number(only?.id) } : {};
  return { event: { ...event, place: { ...place, ...thread } }, payload: whole };
}
