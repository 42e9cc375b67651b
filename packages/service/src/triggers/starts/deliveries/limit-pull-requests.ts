/** Limits how many runs an automation starts for one pull request of a run, so that no run and no review keeps it going forever. */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { type LimitedPullRequest, type Mismatch, ownPullRequestCheck } from '../../automations/match.ts';
import { countStartsOfPullRequests } from '../../history/write.ts';

interface Matching {
  readonly row: { readonly uid: string };
  readonly pullRequest?: LimitedPullRequest;
  readonly mismatch?: Mismatch;
}

/** What an automation has started for a pull request. */
interface Used {
  count: number;
  readonly heads: Set<string>;
}

const keyOf = (uid: string, url: string): string => `${uid} ${url}`;

/**
 * Returns the matches, with a mismatch for those that would exceed their limit. The transaction has locked the automations, so no other
 * transaction starts runs of them meanwhile; a start that waits counts too. Checks of one commit start one run.
 */
export async function limitPullRequests<M extends Matching>(tx: Queryable, matches: readonly M[]): Promise<M[]> {
  const limited = matches.flatMap(({ row, pullRequest }) =>
    pullRequest ? [{ automationUid: row.uid, url: pullRequest.url }] : [],
  );
  if (limited.length === 0) return [...matches];
  const asked = [...new Map(limited.map((each) => [keyOf(each.automationUid, each.url), each])).values()];
  const used = new Map<string, Used>(
    asked.map(({ automationUid, url }) => [keyOf(automationUid, url), { count: 0, heads: new Set() }]),
  );
  for (const { automation_uid: uid, url, head, count } of await countStartsOfPullRequests(tx, asked)) {
    const known = used.get(keyOf(uid, url));
    if (!known) continue;
    known.count += count;
    if (head !== null) known.heads.add(head);
  }
  return matches.map((match) => {
    const { row, pullRequest } = match;
    const known = pullRequest && used.get(keyOf(row.uid, pullRequest.url));
    if (!known) return match;
    const { head, maxStarts } = pullRequest;
    const reason =
      head !== undefined && known.heads.has(head)
        ? `the automation has started a run for the checks of the commit ${head}`
        : known.count >= maxStarts
          ? `the automation has started ${known.count} runs for this pull request, as many as max_starts allows`
          : undefined;
    if (reason !== undefined)
      return { ...match, mismatch: { reason, checks: [{ ...ownPullRequestCheck(reason), trigger: 0 }] } };
    known.count += 1;
    if (head !== undefined) known.heads.add(head);
    return match;
  });
}
