/** Adds facts to an event that its payload lacks: the comments of a review, and a mention for the label of a factory. */
import type { GithubEvent } from '@runyard/contract/webhooks/github-events';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readFactory } from '../factories/factories.ts';
import type { AppRow } from './apps.ts';
import type { AskDeps } from './ask-place.ts';
import type { InstallationRow } from './installations.ts';
import { type AppEvent, at, textOf } from './read-event.ts';
import { isReview, readReview } from './read-review.ts';

/** An event with its payload. */
export interface WholeEvent {
  readonly event: AppEvent;
  readonly payload: unknown;
}

/** GitHub allows 50 characters in the name of a label. */
const maxLabel = 50;
/** On an issue or a pull request, the label `factory:ALIAS` starts work like a mention of the App. */
const prefix = 'factory:';

/** Returns the event that the label would be, if it names the factory of the installation; undefined: the event sets no such label. */
function eventOfLabel({ action, place }: AppEvent, payload: unknown): GithubEvent | undefined {
  if (action !== 'labeled' || place === null || !textOf(at(payload, 'label', 'name')).startsWith(prefix))
    return undefined;
  return place.kind === 'issue' ? 'issue_mentioned' : 'pull_request_mentioned';
}

/** Returns the payload with the mention of the App that the label means; null: the label names another factory. */
async function withMention(
  db: Queryable,
  { team_id: teamId, factory_uid: uid }: InstallationRow,
  payload: unknown,
  slug: string,
): Promise<object | null> {
  const alias = (await readFactory(db, teamId, uid))?.alias;
  const label = textOf(at(payload, 'label', 'name')).toLowerCase();
  if (!alias || label !== `${prefix}${alias}`.toLowerCase().slice(0, maxLabel)) return null;
  return { ...Object(payload), runyard: { mentioned: [slug] } };
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
