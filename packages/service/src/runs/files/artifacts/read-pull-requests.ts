/** Reads what became of pull requests. */
import type { PullRequestActivity } from '@runyard/contract/runs/artifacts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';

/** Largest number of reviewers, and of check suites, of one pull request. */
const maxListed = 20;

const rfc3339 = (column: string) => `to_char((${column}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const ofPull = 'e.team_id = p.team_id AND e.url = p.url';

const read = defineStatement({
  name: 'read_activity_of_pull_requests',
  text: `
    SELECT p.team_id, p.url, p.author_login, p.opened_at, p.merged_at, p.merged_by_login, p.merged_by_person, p.closed_at, p.changed_at,
      p.additions, p.deletions, p.changed_files, p.num_commits, p.history_complete,
      (SELECT min(e.occurred_at) FROM pull_request_events e WHERE ${ofPull} AND e.is_person
        AND e.kind IN ('review_approved', 'review_changes_requested', 'review_commented')) AS first_review_at,
      (SELECT coalesce(jsonb_object_agg(k.kind, k.count), '{}') FROM (
        SELECT e.kind, count(*) FROM pull_request_events e WHERE ${ofPull} AND e.is_person GROUP BY e.kind) k) AS counts,
      (SELECT coalesce(jsonb_agg(jsonb_build_object('login', l.login, 'is_person', l.is_person, 'decision', substr(l.kind, 8),
          'decided_at', ${rfc3339('l.occurred_at')}) ORDER BY l.occurred_at DESC), '[]') FROM (
        SELECT * FROM (SELECT DISTINCT ON (e.login) e.login, e.is_person, e.kind, e.occurred_at, e.review_id FROM pull_request_events e
          WHERE ${ofPull} AND e.kind IN ('review_approved', 'review_changes_requested')
          ORDER BY e.login, e.occurred_at DESC) n
        WHERE NOT EXISTS (SELECT FROM pull_request_events e
          WHERE ${ofPull} AND e.kind = 'pr_action' AND e.review_id = n.review_id) ORDER BY n.occurred_at DESC LIMIT ${maxListed}) l) AS reviews,
      (SELECT coalesce(jsonb_agg(jsonb_build_object('app', l.suite->'app', 'conclusion', l.suite->'conclusion', 'completed_at',
          ${rfc3339("(l.suite->>'completed_at')::timestamptz")}) ORDER BY l.suite->>'completed_at' DESC), '[]') FROM (
        SELECT * FROM (SELECT DISTINCT ON (e.check_suite->'id') e.check_suite AS suite FROM pull_request_events e
          WHERE ${ofPull} AND e.kind = 'checks_completed' AND e.check_suite->>'head_sha' = p.head_sha
          ORDER BY e.check_suite->'id', e.check_suite->>'completed_at' DESC) n ORDER BY suite->>'completed_at' DESC LIMIT ${maxListed}) l
      ) AS checks
    FROM unnest($1::uuid[], $2::text[]) AS asked (team_id, url) JOIN pull_requests p ON p.team_id = asked.team_id AND p.url = asked.url`,
  row: {
    team_id: uuid,
    url: text(),
    author_login: text(),
    opened_at: timestamp,
    merged_at: nullable(timestamp),
    merged_by_login: nullable(text()),
    merged_by_person: nullable(boolean),
    closed_at: nullable(timestamp),
    changed_at: timestamp,
    additions: nullable(integer),
    deletions: nullable(integer),
    changed_files: nullable(integer),
    num_commits: nullable(integer),
    history_complete: boolean,
    first_review_at: nullable(timestamp),
    counts: json<Readonly<Record<string, number>>>(),
    reviews: json<PullRequestActivity['reviews']>(),
    checks: json<PullRequestActivity['checks']>(),
  },
});

const humanKinds = [
  'opened',
  'code_push',
  'review_approved',
  'review_changes_requested',
  'review_commented',
  'comment',
  'review_comment',
  'pr_action',
] as const;

function toActivity(row: RowOf<typeof read>): PullRequestActivity {
  const counts = Object.fromEntries(humanKinds.map((kind) => [kind, row.counts[kind] ?? 0])) as Record<
    (typeof humanKinds)[number],
    number
  >;
  const optional = {
    first_human_review_at: row.first_review_at,
    merged_at: row.merged_at,
    merged_by: row.merged_by_login && { login: row.merged_by_login, is_person: row.merged_by_person === true },
    closed_at: row.closed_at,
    additions: row.additions,
    deletions: row.deletions,
    changed_files: row.changed_files,
    num_commits: row.num_commits,
  };
  return {
    author_login: row.author_login,
    opened_at: row.opened_at,
    updated_at: row.changed_at,
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)),
    reviews: row.reviews,
    checks: row.checks,
    human_interactions: { ...counts, total: Object.values(counts).reduce((sum, count) => sum + count, 0) },
    human_code_change: counts.opened + counts.code_push > 0,
    history_complete: row.history_complete,
  };
}

interface Known {
  readonly teamId: string;
  readonly canonicalUrl: string | null;
}
const keyOf = ({ teamId, canonicalUrl }: Known): string => `${teamId} ${canonicalUrl}`;

/** Returns a function that returns what became of a pull request; undefined: no event of it was seen. */
export async function readActivity(
  db: Queryable,
  pulls: readonly Known[],
): Promise<(pull: Known) => PullRequestActivity | undefined> {
  if (pulls.length === 0) return () => undefined;
  const asked = [...new Map(pulls.map((pull) => [keyOf(pull), pull])).values()];
  const rows = await db.query(read, [asked.map(({ teamId }) => teamId), asked.map(({ canonicalUrl }) => canonicalUrl)]);
  const found = new Map(rows.map((row) => [keyOf({ teamId: row.team_id, canonicalUrl: row.url }), toActivity(row)]));
  return (pull) => found.get(keyOf(pull));
}
