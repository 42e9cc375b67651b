import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunActor } from '../actor.ts';
import { readProfiles } from '../profiles.ts';
import { describeWithheld } from './describe-withheld.ts';
import type { Withheld } from './run-rights.ts';

/** Returns why a right is withheld from a run of the executor, with the name of the author, and how to change that. */
export async function explainWithheld(
  db: Queryable,
  teamId: string,
  executor: RunActor,
  withheld: Withheld,
): Promise<string> {
  const author = withheld.content?.author;
  const profileOf = await readProfiles(db, teamId, author ? [author] : []);
  return describeWithheld(withheld, executor, (actor) => profileOf(actor).display_name ?? actor.kind);
}
