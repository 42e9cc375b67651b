/** The issues, pull requests and review threads of events, and the runs that answer there. */
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../platform/store/database/statement.ts';
import type { PlaceOfEvent } from './read-event.ts';

const upsert = defineStatement({
  name: 'upsert_github_place',
  text: `
    INSERT INTO github_places (installation_uid, repository_id, repository, kind, number, thread_id, is_private) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (installation_uid, repository_id, kind, number, thread_id) DO UPDATE SET repository = excluded.repository,
      is_private = excluded.is_private
    RETURNING id`,
  row: { id: uuid },
});

/** Records a place, and returns its id. The repository may have a new name since the last event. */
export async function recordPlace(db: Queryable, installationUid: string, place: PlaceOfEvent): Promise<string> {
  const { repositoryId, repository, isPrivate, kind, number, threadId } = place;
  const [made] = await db.query(upsert, [installationUid, repositoryId, repository, kind, number, threadId, isPrivate]);
  if (!made) throw new Error('the place was not recorded');
  return made.id;
}

const readOne = defineStatement({
  name: 'read_github_place',
  text: `
    SELECT p.id, p.installation_uid, p.repository_id, p.repository, p.is_private, p.kind, p.number, p.thread_id, i.team_id, i.app_uid,
      i.installation_id::text AS installation_id, i.is_suspended, i.subscription_id
    FROM github_places p JOIN github_installations i ON i.uid = p.installation_uid WHERE p.id = $1`,
  row: {
    id: uuid,
    installation_uid: text(),
    repository_id: integer,
    repository: text(),
    is_private: boolean,
    kind: text<PlaceOfEvent['kind']>(),
    number: integer,
    thread_id: integer,
    team_id: uuid,
    app_uid: text(),
    installation_id: text(),
    is_suspended: boolean,
    subscription_id: uuid,
  },
});

export type PlaceRow = RowOf<typeof readOne>;

export const readPlace = async (db: Queryable, id: string): Promise<PlaceRow | null> =>
  (await db.query(readOne, [id]))[0] ?? null;

/**
 * The last run of the place, with the account that caused it: an event of the place started it, or it repeats such a run. The log of the webhook names the run from its first
 * moment, because one transaction writes both. After weeks, only the comment about the run still names it. A run that was deleted does not
 * count, so the next comment starts a new one.
 */
const readRun = defineStatement({
  name: 'read_run_of_github_place',
  text: `
    SELECT * FROM (
      (SELECT d.runs[cardinality(d.runs)]::uuid AS run_id, d.sender->>'trust' = 'outsider' AS is_restricted, (d.sender->>'id')::bigint AS sender_id
      FROM webhook_deliveries d WHERE d.sender->>'place_id' = $1::text AND d.sender IS NOT NULL AND d.runs <> '{}' ORDER BY d.id DESC LIMIT 1)
      UNION ALL
      (SELECT run_id, is_restricted, sender_id FROM github_comments WHERE place_id = $1::uuid AND run_id IS NOT NULL
      ORDER BY created_at DESC LIMIT 1)) found
    WHERE EXISTS (SELECT FROM runs r WHERE r.id = found.run_id)
    ORDER BY run_id DESC LIMIT 1`,
  row: { run_id: uuid, is_restricted: boolean, sender_id: integer },
});

export interface RunOfPlace {
  readonly runId: string;
  /** True if somebody outside the team caused the run. */
  readonly isRestricted: boolean;
  /** The account that caused the run. */
  readonly senderId: number;
}

/** Returns the run that a comment in the place continues; null: there is none. */
export async function readRunOfPlace(db: Queryable, placeId: string): Promise<RunOfPlace | null> {
  const [found] = await db.query(readRun, [placeId]);
  return found ? { runId: found.run_id, isRestricted: found.is_restricted, senderId: found.sender_id } : null;
}

/** A retry or a rerun has the place of the run that it repeats. A run for a comparison has no place. */
const readPlaceOf = defineStatement({
  name: 'read_github_place_of_run',
  text: `
    WITH RECURSIVE repeated AS (
      SELECT id, team_id, coalesce(retry_of, rerun_of) AS repeats, 1 AS depth FROM runs JOIN run_requests q ON q.run_id = id
      WHERE id = $1 AND q.comparison_commits IS NULL
      UNION ALL
      SELECT r.id, r.team_id, coalesce(r.retry_of, r.rerun_of), p.depth + 1 FROM repeated p JOIN runs r ON r.id = p.repeats AND r.team_id = p.team_id
      WHERE p.depth < 20
    )
    SELECT (d.sender->>'place_id')::uuid AS place_id, d.sender->>'trust' = 'outsider' AS is_restricted, (d.sender->>'id')::bigint AS sender_id,
      d.sender->>'person' AS person
    FROM repeated p JOIN starts s ON s.run_id = p.id JOIN webhook_deliveries d ON d.id = s.delivery_id
    WHERE s.automation_uid IS NOT NULL AND ($2::text IS NULL OR s.webhook_uid = $2) AND d.sender ? 'place_id'
    ORDER BY p.depth LIMIT 1`,
  row: { place_id: uuid, is_restricted: boolean, sender_id: integer, person: nullable(text()) },
});

interface PlaceOfRun extends Omit<RunOfPlace, 'runId'> {
  readonly placeId: string;
  /** UID of the person who caused the event; null: no person has linked the account. */
  readonly person: string | null;
}

/**
 * Returns the place of the event that started a run, or the run that it repeats; null: no event of this installation started it, or the event
 * has no place. The metadata of the run do not decide, because members choose them. `webhookUid`: the webhook of the installation; null: any.
 */
export async function readPlaceOfRun(
  db: Queryable,
  runId: string,
  webhookUid: string | null,
): Promise<PlaceOfRun | null> {
  const [found] = await db.query(readPlaceOf, [runId, webhookUid]);
  if (!found) return null;
  const { place_id: placeId, sender_id: senderId, is_restricted: isRestricted, person } = found;
  return { placeId, senderId, isRestricted, person };
}

const claimNotice = defineStatement({
  name: 'claim_notice_of_github_place',
  text: 'UPDATE github_places SET noticed_at = clock_timestamp() WHERE id = $1 AND noticed_at IS NULL RETURNING id',
  row: { id: uuid },
});

/** Marks the place. Returns true at the first call: the notice how to link an account was not yet written there. */
export const isFirstNotice = async (tx: Queryable, placeId: string): Promise<boolean> =>
  (await tx.query(claimNotice, [placeId])).length === 1;
