/** Counts the starts of automations for pull requests. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, text } from '../../platform/store/database/statement.ts';

const countOfPullRequests = defineStatement({
  name: 'count_starts_of_pull_requests',
  text: `
    SELECT automation_uid, pull_request_url AS url, pull_request_head AS head, count(*)::integer AS count
    FROM starts JOIN unnest($1::text[], $2::text[]) AS asked (uid, url) ON automation_uid = asked.uid AND pull_request_url = asked.url
    WHERE outcome = 'started' OR (outcome = 'waiting' AND ($3::uuid IS NULL OR id < $3)) GROUP BY automation_uid, pull_request_url, pull_request_head`,
  row: { automation_uid: text(), url: text(), head: nullable(text()), count: integer },
});

/** An automation, and the URL of a pull request. */
export interface AskedStarts {
  readonly automationUid: string;
  readonly url: string;
}
/**
 * Returns how many runs automations have started for pull requests, or will start, by the commits that were checked. `before`: a start that
 * waits; only waiting starts before it count.
 */
export const countStartsOfPullRequests = (tx: Queryable, asked: readonly AskedStarts[], before: string | null = null) =>
  tx.query(countOfPullRequests, [asked.map(({ automationUid }) => automationUid), asked.map(({ url }) => url), before]);

const countSincePerson = defineStatement({
  name: 'count_starts_since_person',
  text: `
    SELECT s.automation_uid, s.about_pull_request AS url, count(*)::integer AS count
    FROM unnest($1::uuid[], $2::text[], $3::text[]) AS asked (team_id, uid, url)
    JOIN starts s ON s.automation_uid = asked.uid AND s.about_pull_request = asked.url
    WHERE s.outcome IN ('started', 'waiting') AND NOT EXISTS (SELECT FROM pull_request_events e
      WHERE e.team_id = asked.team_id AND e.url = asked.url AND e.frees_starts AND e.occurred_at > s.fired_at)
    GROUP BY s.automation_uid, s.about_pull_request`,
  row: { automation_uid: text(), url: text(), count: integer },
});

/** Returns how many runs automations have started about pull requests since a person did something there. */
export const countStartsSincePerson = (tx: Queryable, asked: readonly (AskedStarts & { readonly teamId: string })[]) =>
  tx.query(countSincePerson, [
    asked.map(({ teamId }) => teamId),
    asked.map(({ automationUid }) => automationUid),
    asked.map(({ url }) => url),
  ]);

const findOfStart = defineStatement({
  name: 'find_pull_request_of_start',
  text: `
    SELECT s.pull_request_url AS url FROM runs r JOIN starts s ON s.run_id = ANY (r.id || r.ancestor_ids)
    WHERE r.id = $1 AND s.automation_uid IS NOT NULL AND s.pull_request_url IS NOT NULL LIMIT 1`,
  row: { url: text() },
});

/** Returns the pull request for which the run, or a run above it, was started; undefined: it was started for none. */
export const findPullRequestOfStart = async (db: Queryable, runId: string): Promise<string | undefined> =>
  (await db.query(findOfStart, [runId]))[0]?.url;
