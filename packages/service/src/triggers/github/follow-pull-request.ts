/** Follows the pull requests of an installation by their events. */
import type { Database } from '../../platform/store/database/database.ts';
import { type PullRequestEvent, recordPullRequestEvent } from '../../runs/files/artifacts/pull-requests.ts';
import { finishPullRequests } from '../../runs/inbox/resolve.ts';
import { hasPushed } from '../../runs/repositories/pull-requests/own.ts';
import { reviewedPullRequest } from '../automations/reviewed-pull-requests.ts';
import type { SenderTrust } from '../webhooks/ingest/sender.ts';

/**
 * Returns whether a person caused the event. A run that pushes or opens a pull request with somebody's credential looks like this person, so
 * the commit decides. Programs have accounts of people too, so the other events count only if a member has linked the account.
 */
async function isByPerson(
  db: Database,
  teamId: string,
  { kind, isPerson, seen }: PullRequestEvent,
  trust: SenderTrust,
) {
  if (!isPerson) return false;
  if (kind !== 'opened' && kind !== 'code_push') return trust === 'member';
  return seen?.headSha != null && !(await hasPushed(db, teamId, seen.headSha));
}

/** Records what happened to a pull request, and resolves the notification about its review. */
export async function followPullRequest(
  db: Database,
  teamId: string,
  pull: PullRequestEvent,
  { name, payload, trust }: { readonly name: string; readonly payload: unknown; readonly trust: SenderTrust },
): Promise<void> {
  await recordPullRequestEvent(db, teamId, { ...pull, freesStarts: await isByPerson(db, teamId, pull, trust) });
  const reviewed = reviewedPullRequest({ scheme: 'github', event: name, payload });
  if (reviewed !== null) await db.query(finishPullRequests, [teamId, [reviewed]]);
}
