/** The label `factory:ALIAS`. On an issue or a pull request, it starts work like a mention of the App. */
import type { GithubEvent } from '@runyard/contract/webhooks/github-events';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readFactory } from '../factories/factories.ts';
import type { InstallationRow } from './installations.ts';
import { type AppEvent, at, textOf } from './read-event.ts';

/** GitHub allows 50 characters in the name of a label. */
const maxLabel = 50;
const prefix = 'factory:';

/** Returns the event that the label would be, if it names the factory of the installation; undefined: the event sets no such label. */
export function eventOfLabel({ action, place }: AppEvent, payload: unknown): GithubEvent | undefined {
  if (action !== 'labeled' || place === null || !textOf(at(payload, 'label', 'name')).startsWith(prefix))
    return undefined;
  return place.kind === 'issue' ? 'issue_mentioned' : 'pull_request_mentioned';
}

/** Returns the payload with the mention of the App that the label means; null: the label names another factory. */
export async function withMention(
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
