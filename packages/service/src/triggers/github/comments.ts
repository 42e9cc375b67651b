/** The comments of the service: one for each run of a place, and one for each notice. */
import type { RowRule } from '../../platform/domain.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import type { RunOfPlace } from './places.ts';

/** Limits of new comments in a day. */
export const maxPerDay = { place: 60, repository: 500, team: 2_000 } as const;

const insert = defineStatement({
  name: 'insert_github_comment',
  text: `
    INSERT INTO github_comments (key, place_id, run_id, sender_id, is_restricted) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key) DO NOTHING`,
  row: {},
});

/** Records that a comment is to be written. `key`: the id of the run, or of the delivery of a notice. */
export async function recordComment(
  db: Queryable,
  key: string,
  placeId: string,
  run: RunOfPlace | null,
): Promise<void> {
  await db.query(insert, [key, placeId, run?.runId ?? null, run?.senderId ?? null, run?.isRestricted ?? null]);
}

/** Reads the counts from indexes: each table of places is small compared with its comments. */
const count = defineStatement({
  name: 'count_github_comments_of_day',
  text: `
    SELECT count(*) FILTER (WHERE c.place_id = $1) AS place, count(*) FILTER (WHERE p.repository_id = o.repository_id) AS repository,
      count(*) AS team
    FROM github_places o JOIN github_installations oi ON oi.uid = o.installation_uid
    JOIN github_installations i ON i.team_id = oi.team_id JOIN github_places p ON p.installation_uid = i.uid
    JOIN github_comments c ON c.place_id = p.id AND c.asked_at > clock_timestamp() - interval '1 day'
    WHERE o.id = $1`,
  row: { place: integer, repository: integer, team: integer },
});

/** Returns which limit of a day another comment would exceed; null: none. */
export async function limitReached(db: Queryable, placeId: string): Promise<keyof typeof maxPerDay | null> {
  const [counted] = await db.query(count, [placeId]);
  const names = ['place', 'repository', 'team'] as const;
  return names.find((name) => (counted?.[name] ?? 0) >= maxPerDay[name]) ?? null;
}

/**
 * Begins to write a comment. No other process may write it until the lease ends. `asked_at`: the time at which an earlier attempt asked GitHub
 * to create the comment. If it is set, GitHub may have the comment although no answer arrived.
 */
const lease = defineStatement({
  name: 'lease_github_comment',
  text: `
    UPDATE github_comments c SET leased_until = clock_timestamp() + interval '25 seconds'
    FROM github_comments before
    WHERE c.key = $1 AND before.key = c.key AND (c.leased_until IS NULL OR c.leased_until < clock_timestamp())
    RETURNING c.key, c.place_id, c.run_id, c.comment_id, before.asked_at, c.text_hash, c.is_deleted, c.url, c.head_sha,
      c.leased_until`,
  row: {
    key: uuid,
    place_id: uuid,
    run_id: nullable(uuid),
    comment_id: nullable(integer),
    asked_at: nullable(timestamp),
    text_hash: nullable(bytes),
    is_deleted: boolean,
    url: nullable(text()),
    head_sha: nullable(text()),
    leased_until: timestamp,
  },
});

export type LeasedComment = RowOf<typeof lease>;

/** Null: another process writes the comment now. */
export const leaseComment = async (db: Queryable, key: string): Promise<LeasedComment | null> =>
  (await db.query(lease, [key]))[0] ?? null;

const markAsked = defineStatement({
  name: 'mark_github_comment_asked',
  text: 'UPDATE github_comments SET asked_at = coalesce(asked_at, clock_timestamp()) WHERE key = $1 AND leased_until = $2 RETURNING key',
  row: { key: uuid },
});

/** Records that GitHub is asked now. Returns false if the lease has ended meanwhile. */
export const markCommentAsked = async (db: Queryable, { key, leased_until }: LeasedComment): Promise<boolean> =>
  (await db.query(markAsked, [key, leased_until])).length === 1;

const settle = defineStatement({
  name: 'settle_github_comment',
  text: `
    UPDATE github_comments SET comment_id = coalesce($3::bigint, comment_id), text_hash = coalesce($4, text_hash), request_id = $5,
      is_deleted = is_deleted OR $6, url = coalesce($7, url), head_sha = coalesce($8, head_sha), leased_until = NULL
    WHERE key = $1 AND leased_until = $2 RETURNING key`,
  row: { key: uuid },
});

export interface WrittenComment {
  readonly commentId?: number;
  readonly hash?: Buffer;
  /** The request that the comment shows. */
  readonly requestId: string | null;
  readonly isDeleted?: boolean;
  /** Page of what a tool of a run wrote. */
  readonly url?: string;
  /** The commit on which GitHub shows a check run. */
  readonly headSha?: string;
}

/** Records what GitHub has now, and ends the lease. Returns false if the lease has ended meanwhile. */
export async function settleComment(
  db: Queryable,
  { key, leased_until }: LeasedComment,
  { commentId, hash, requestId, isDeleted = false, url, headSha }: WrittenComment,
): Promise<boolean> {
  const values = [
    key,
    leased_until,
    commentId ?? null,
    hash ?? null,
    requestId,
    isDeleted,
    url ?? null,
    headSha ?? null,
  ];
  return (await db.query(settle, values)).length === 1;
}

const release = defineStatement({
  name: 'release_github_comment',
  text: 'UPDATE github_comments SET leased_until = NULL WHERE key = $1 AND leased_until = $2',
  row: {},
});

/** Ends the lease without a result, so that the next attempt can begin at once. */
export const releaseComment = async (db: Queryable, { key, leased_until }: LeasedComment): Promise<void> => {
  await db.query(release, [key, leased_until]);
};

export const oldComments: RowRule = {
  table: 'github_comments',
  isOver: `created_at < now() - interval '180 days'`,
};
