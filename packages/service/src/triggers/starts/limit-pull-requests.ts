/** Limits how many runs an automation starts for one pull request, so that no run, no check and no review keeps it going forever. */
import { maxStartsWithoutPerson } from '@runyard/contract/limits';
import type { Queryable } from '../../platform/store/database/database.ts';
import { type LimitedPullRequest, type Mismatch, ownPullRequestCheck } from '../automations/match.ts';
import { countStartsOfPullRequests, countStartsSincePerson } from '../history/pull-requests.ts';
import type { WaitingStart } from '../history/write.ts';

interface Matching {
  readonly delivery: { readonly teamId: string };
  readonly row: { readonly uid: string };
  readonly pullRequest?: LimitedPullRequest;
  /** URL of the pull request that the event is about, if its trigger sets no limit. */
  readonly about?: string;
  readonly mismatch?: Mismatch;
}

/** The runs that an automation has started for a pull request. */
interface Used {
  count: number;
  readonly heads: Set<string>;
}

const keyOf = (uid: string, url: string): string => `${uid} ${url}`;

/** Returns why no further run may start for a pull request; undefined: it may. Checks of one commit start one run. */
function reasonOf({ count, heads }: Used, { head, maxStarts }: Omit<LimitedPullRequest, 'url'>): string | undefined {
  if (head !== undefined && heads.has(head))
    return `the automation has started a run for the checks of the commit ${head}`;
  return count >= maxStarts
    ? `the automation has started ${count} runs for this pull request, the limit of max_starts`
    : undefined;
}

type Counted = Awaited<ReturnType<typeof countStartsOfPullRequests>>;
const usedOf = (counted: Counted): Used => ({
  count: counted.reduce((sum, { count }) => sum + count, 0),
  heads: new Set(counted.flatMap(({ head }) => head ?? [])),
});

/**
 * Returns the matches, with a mismatch for those that would exceed their limit. The transaction has locked the automations whose triggers
 * set a limit, so no other transaction starts runs of them meanwhile; a start that waits counts too.
 */
export async function limitPullRequests<M extends Matching>(tx: Queryable, matches: readonly M[]): Promise<M[]> {
  return await limitWithoutPerson(tx, await limitOwn(tx, matches));
}

async function limitOwn<M extends Matching>(tx: Queryable, matches: readonly M[]): Promise<M[]> {
  const limited = matches.flatMap(({ row, pullRequest }) =>
    pullRequest ? [{ automationUid: row.uid, url: pullRequest.url }] : [],
  );
  if (limited.length === 0) return [...matches];
  const asked = [...new Map(limited.map((each) => [keyOf(each.automationUid, each.url), each])).values()];
  const counted = await countStartsOfPullRequests(tx, asked);
  const used = new Map(
    asked.map(({ automationUid, url }) => [
      keyOf(automationUid, url),
      usedOf(counted.filter((each) => each.automation_uid === automationUid && each.url === url)),
    ]),
  );
  return matches.map((match) => {
    const { row, pullRequest } = match;
    const known = pullRequest && used.get(keyOf(row.uid, pullRequest.url));
    if (!known) return match;
    const reason = reasonOf(known, pullRequest);
    if (reason !== undefined)
      return { ...match, mismatch: { reason, checks: [{ ...ownPullRequestCheck(reason), trigger: 0 }] } };
    known.count += 1;
    if (pullRequest.head !== undefined) known.heads.add(pullRequest.head);
    return match;
  });
}

/**
 * Limits the runs of triggers without a limit of their own until a person acts in the pull request. This does not lock the automations, so
 * simultaneous events may exceed the limit by a few.
 */
async function limitWithoutPerson<M extends Matching>(tx: Queryable, matches: readonly M[]): Promise<M[]> {
  const asked = matches.flatMap(({ delivery: { teamId }, row, about, mismatch }) =>
    about !== undefined && mismatch === undefined ? [{ teamId, automationUid: row.uid, url: about }] : [],
  );
  if (asked.length === 0) return [...matches];
  const counted = await countStartsSincePerson(tx, asked);
  const full = new Set(
    counted
      .filter(({ count }) => count >= maxStartsWithoutPerson)
      .map(({ automation_uid: uid, url }) => keyOf(uid, url)),
  );
  const reason = `the automation has started ${maxStartsWithoutPerson} runs for this pull request since a person last acted there; it starts again after a push, comment or review of a person`;
  return matches.map((match) =>
    match.about !== undefined && full.has(keyOf(match.row.uid, match.about))
      ? { ...match, mismatch: { reason, checks: [{ check: 'event', passed: false, reason, trigger: 0 }] } }
      : match,
  );
}

/**
 * Returns why a start that waited may not start its run; undefined: it may. Starts whose automation was locked by other transactions were
 * counted without the lock, so they are counted again. The transaction has locked the automation.
 */
export async function whyStartIsOver(
  tx: Queryable,
  automationUid: string,
  {
    id,
    pull_request_url: url,
    pull_request_head: head,
    pull_request_max_starts: maxStarts,
  }: Pick<WaitingStart, 'id' | 'pull_request_url' | 'pull_request_head' | 'pull_request_max_starts'>,
): Promise<string | undefined> {
  if (url === null || maxStarts === null) return undefined;
  const counted = await countStartsOfPullRequests(tx, [{ automationUid, url }], id);
  return reasonOf(usedOf(counted), { head: head ?? undefined, maxStarts });
}
