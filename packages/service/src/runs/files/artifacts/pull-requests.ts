/** Records what became of pull requests. The artifacts of runs show the state. */
import type { PullRequestChangeType, PullRequestState } from '@runyard/contract/runs/artifacts';
import type { RowRule } from '../../../platform/domain.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../../platform/store/database/statement.ts';
import { enqueuedColumns, enqueuePullRequestChanges, tellSubscribers } from '../../subscriptions/enqueue.ts';

/** A pull request as an event shows it. Times are RFC 3339. */
export interface SeenPullRequest {
  readonly state: Exclude<PullRequestState, 'unknown'>;
  readonly author: string;
  readonly openedAt: string;
  readonly mergedAt: string | null;
  readonly closedAt: string | null;
  readonly changedAt: string;
  /** The commit at its head; null: the event does not have it. */
  readonly headSha: string | null;
  readonly mergedBy: { readonly login: string; readonly isPerson: boolean } | null;
  /** Only some events have these numbers. */
  readonly sizes: Readonly<Record<'additions' | 'deletions' | 'changedFiles' | 'commits', number | null>>;
}

export interface PullRequestEvent {
  /** In the canonical form of artifacts. */
  readonly url: string;
  /** GitHub's id of the delivery. An event that comes twice is recorded once. */
  readonly guid: string;
  readonly kind: PullRequestChangeType;
  /** False: a bot or an App did it. */
  readonly isPerson: boolean;
  readonly login: string;
  /** Null: the event does not have it, because it is a comment or a check. */
  readonly seen: SeenPullRequest | null;
  /** Absent: the event is no check. */
  readonly checkSuite?: CheckSuite;
  /** True: a person caused the event, so automations may again start runs for the pull request. */
  readonly freesStarts?: boolean;
  /** GitHub's id of the review that was submitted or dismissed. */
  readonly reviewId?: number | undefined;
}

/** A completed check suite. The database and the API have these names. */
export interface CheckSuite {
  readonly id: number;
  readonly app: string;
  readonly head_sha: string;
  readonly conclusion: string;
  /** RFC 3339 */
  readonly completed_at: string;
}

/** Largest number of runs whose subscribers get an event of one pull request. */
const maxRunsOfEvent = 10;

/**
 * An event that was known already changes nothing. Of several events, the one with the newest time decides about the state. The deliveries
 * to the subscribers of the runs are part of the statement.
 */
const record = defineStatement({
  name: 'record_pull_request_event',
  text: `
    WITH event AS (
      INSERT INTO pull_request_events (team_id, url, guid, kind, is_person, login, check_suite, frees_starts, review_id)
      VALUES ($1, $2, $3, $4, $5, $6, $8, $9, $10)
      ON CONFLICT (team_id, guid) DO NOTHING RETURNING kind
    ), pull AS (
      INSERT INTO pull_requests AS p (team_id, url, state, author_login, opened_at, merged_at, closed_at, changed_at, additions, deletions,
        changed_files, num_commits, history_complete, head_sha, merged_by_login, merged_by_person)
      SELECT $1, $2, s.state, s.author, s."openedAt", s."mergedAt", s."closedAt", s."changedAt", s.additions, s.deletions,
        s."changedFiles", s.commits, event.kind = 'opened', s."headSha", s."mergedBy"->>'login', (s."mergedBy"->'isPerson')::boolean
      FROM event, jsonb_to_record($7::jsonb) AS s(state text, author text, "openedAt" timestamptz, "mergedAt" timestamptz,
        "closedAt" timestamptz, "changedAt" timestamptz, additions integer, deletions integer, "changedFiles" integer, commits integer,
        "headSha" text, "mergedBy" jsonb)
      WHERE $7::jsonb IS NOT NULL
      ON CONFLICT (team_id, url) DO UPDATE SET
        state = CASE WHEN excluded.changed_at >= p.changed_at THEN excluded.state ELSE p.state END,
        merged_at = coalesce(excluded.merged_at, p.merged_at),
        merged_by_login = coalesce(excluded.merged_by_login, p.merged_by_login),
        merged_by_person = coalesce(excluded.merged_by_person, p.merged_by_person),
        closed_at = CASE WHEN excluded.changed_at >= p.changed_at THEN excluded.closed_at ELSE p.closed_at END,
        head_sha = CASE WHEN excluded.changed_at >= p.changed_at THEN coalesce(excluded.head_sha, p.head_sha) ELSE p.head_sha END,
        additions = coalesce(excluded.additions, p.additions), deletions = coalesce(excluded.deletions, p.deletions),
        changed_files = coalesce(excluded.changed_files, p.changed_files), num_commits = coalesce(excluded.num_commits, p.num_commits),
        history_complete = p.history_complete OR excluded.history_complete,
        changed_at = greatest(p.changed_at, excluded.changed_at)
      RETURNING p.state
    ), changed AS (
      SELECT ${enqueuedColumns.map((name) => `r.${name}`).join(', ')}, r.state, jsonb_build_object('url', $2::text,
        'status', coalesce((SELECT state FROM pull), (SELECT state FROM pull_requests WHERE team_id = $1 AND url = $2), 'unknown'),
        'change', event.kind, 'login', $6::text, 'is_person', $5::boolean, 'conclusion', $8::jsonb->>'conclusion') AS pull_request
      FROM event, artifacts a JOIN runs r ON r.id = a.run_id
      WHERE a.team_id = $1 AND a.canonical_url = $2 AND a.artifact_type = 'PULL_REQUEST' AND a.is_ready
      ORDER BY r.id DESC LIMIT ${maxRunsOfEvent}
    ), delivery AS (${enqueuePullRequestChanges('changed')})
    SELECT ${tellSubscribers('delivery')}`,
  row: {},
});

/** Records what happened to a pull request of the team. */
export async function recordPullRequestEvent(db: Queryable, teamId: string, event: PullRequestEvent): Promise<void> {
  const { url, guid, kind, isPerson, login, seen, checkSuite, freesStarts = false, reviewId } = event;
  const pull = seen && { ...seen, ...seen.sizes };
  const values = [teamId, url, guid, kind, isPerson, login, pull && JSON.stringify(pull)];
  await db.query(record, [...values, checkSuite ? JSON.stringify(checkSuite) : null, freesStarts, reviewId ?? null]);
}

export const oldPullRequestEvents: RowRule = {
  table: 'pull_request_events',
  isOver: `occurred_at < now() - interval '400 days'`,
};

const findOpened = defineStatement({
  name: 'find_pull_request_opened_for_run',
  text: `
    SELECT is_opened FROM artifacts WHERE run_id = $1 AND artifact_type = 'PULL_REQUEST' AND canonical_url = $2 AND is_opened LIMIT 1`,
  row: { is_opened: boolean },
});

/** Returns whether the service opened the pull request at this canonical URL for the run. A report of the run's agent proves nothing. */
export const hasOpened = async (db: Queryable, runId: string, url: string): Promise<boolean> =>
  (await db.query(findOpened, [runId, url])).length > 0;
