/** Adds facts to an event that its payload lacks: the comments of a review, and a mention for the label of a factory. */
import type { GithubEvent } from '@runyard/contract/webhooks/github-events';
import type { AppRow } from './apps.ts';
import type { AskDeps } from './ask-place.ts';
import { eventOfLabel, withMention } from './factory-label.ts';
import type { InstallationRow } from './installations.ts';
import type { AppEvent } from './read-event.ts';
import { isReview, readReview } from './read-review.ts';

/** An event with its payload. */
export interface WholeEvent {
  readonly event: AppEvent;
  readonly payload: unknown;
}

/** Returns the event that the delivery may also be when it is complete; undefined: nothing is added to it. */
export const laterNameOf = (event: AppEvent, payload: unknown): GithubEvent | undefined =>
  isReview(event) ? 'pull_request_mentioned' : eventOfLabel(event, payload);

/** Returns the complete event; null: nothing is to be added. `away`: GitHub does not answer now. */
export async function completeEvent(
  deps: AskDeps,
  installation: InstallationRow,
  { slug }: AppRow,
  { event, payload }: WholeEvent,
): Promise<WholeEvent | 'away' | null> {
  if (isReview(event)) return await readReview(deps, installation, event, payload);
  if (eventOfLabel(event, payload) === undefined) return null;
  const labeled = await withMention(deps.db, installation, payload, slug);
  return labeled && { event, payload: labeled };
}
