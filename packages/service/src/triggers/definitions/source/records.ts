/** Stores the sources of factories. A process claims a source while it syncs the factory. */
import { randomUUID } from 'node:crypto';
import type { DefinitionVariables } from '@runyard/contract/factories/definition-variables';
import type { FactorySyncFault, FactorySyncOutcome } from '@runyard/contract/factories/factory-sources';
import type { Queryable, Transaction } from '../../../platform/store/database/database.ts';
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
import { placeOf } from './followed.ts';

/**
 * A claim ends after this many seconds, so that another process may sync if the first one was killed. The time is longer than a whole
 * sync takes: waiting, reading the repository and applying the files.
 */
const claimSeconds = 120;
/** Shortest time in seconds between two syncs of one factory, if pushes cause them. */
const pushSeconds = 5;
/** Largest number of sources that one round of a process syncs at the same time. */
const batchSize = 4;

/** The outcomes of a sync that are stored. */
export type StoredOutcome = Exclude<FactorySyncOutcome, 'superseded'>;

const row = {
  factory_uid: text(),
  team_id: uuid,
  owner: text(),
  repo: text(),
  branch: nullable(text()),
  folder: text(),
  poll_interval_seconds: integer,
  variables: json<DefinitionVariables>(),
  set_by_uid: text(),
  set_at: timestamp,
  due_at: timestamp,
  checked_at: nullable(timestamp),
  applied_commit: nullable(text()),
  last_outcome: nullable(text<StoredOutcome>()),
  last_at: nullable(timestamp),
  last_commit: nullable(text()),
  last_message: nullable(text()),
  last_faults: nullable(json<FactorySyncFault[]>()),
};

const columns = Object.keys(row)
  .map((column) => `s.${column}`)
  .join(', ');

export type SourceRow = RowOf<typeof readOne>;

const readOne = defineStatement({
  name: 'read_source_of_factory',
  text: `SELECT ${columns} FROM factory_sources s WHERE s.team_id = $1 AND s.factory_uid = $2`,
  row,
});

/** Replaces the source and its claim. A sync of the previous source that is in progress loses its claim, so it stores no result. */
const write = defineStatement({
  name: 'write_source_of_factory',
  text: `
    INSERT INTO factory_sources AS s (claim, team_id, factory_uid, owner, repo, branch, folder, poll_interval_seconds, set_by_uid,
      variables, claimed_at, claimed_until, due_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, clock_timestamp(),
      clock_timestamp() + interval '${claimSeconds} seconds', clock_timestamp() + $8::integer * interval '1 second')
    ON CONFLICT (factory_uid) DO UPDATE SET owner = excluded.owner, repo = excluded.repo, branch = excluded.branch,
      folder = excluded.folder, poll_interval_seconds = excluded.poll_interval_seconds, variables = excluded.variables, set_by_uid = excluded.set_by_uid,
      set_at = clock_timestamp(), due_at = excluded.due_at, claim = excluded.claim, claimed_at = excluded.claimed_at,
      claimed_until = excluded.claimed_until, checked_at = NULL, found_at = NULL, applied_commit = NULL,
      last_outcome = NULL, last_at = NULL, last_commit = NULL, last_message = NULL, last_faults = NULL
    RETURNING ${columns}`,
  row,
});

const remove = defineStatement({
  name: 'delete_source_of_factory',
  text: `DELETE FROM factory_sources WHERE factory_uid = $1 RETURNING owner || '/' || repo AS repository`,
  row: { repository: text() },
});

/** SQL: begins the claim $1 of the row. The branch is due again after its poll interval, plus or minus 10 %. */
const claiming = `
  claim = $1, claimed_at = clock_timestamp(), claimed_until = clock_timestamp() + interval '${claimSeconds} seconds',
  due_at = clock_timestamp() + s.poll_interval_seconds * (0.9 + 0.2 * random()) * interval '1 second'`;

/** SQL: the branch must be read now. A source with an expired claim is also due, because its process was killed. */
const isDue = '(s.due_at <= clock_timestamp() OR s.claim IS NOT NULL)';
const isFree = '(s.claimed_until IS NULL OR s.claimed_until <= clock_timestamp())';

/**
 * Finds out whether a source is due. Reads the index on `due_at` in its order. A search in this index for past times would not find
 * sources with expired claims.
 */
export const dueSources = defineStatement({
  name: 'find_due_sources',
  text: `SELECT FROM factory_sources s WHERE ${isDue} AND ${isFree} ORDER BY s.due_at LIMIT 1`,
  row: {},
});

/** Claims at most one source of each team at a time, so that the slow repositories of one team do not delay other teams. */
const claimDue = defineStatement({
  name: 'claim_due_sources',
  text: `
    WITH due AS (
      SELECT s.factory_uid, row_number() OVER (PARTITION BY s.team_id ORDER BY s.due_at) AS place, s.due_at FROM factory_sources s
      WHERE ${isDue} AND ${isFree}
        AND NOT EXISTS (SELECT FROM factory_sources o WHERE o.team_id = s.team_id AND o.claimed_until > clock_timestamp())
    ), free AS (
      SELECT s.factory_uid FROM factory_sources s
      WHERE s.factory_uid IN (SELECT factory_uid FROM due WHERE place = 1 ORDER BY due_at LIMIT ${batchSize})
        AND ${isDue} AND ${isFree} FOR UPDATE SKIP LOCKED
    )
    UPDATE factory_sources s SET ${claiming} FROM free WHERE s.factory_uid = free.factory_uid RETURNING ${columns}`,
  row,
});

const claimOne = defineStatement({
  name: 'claim_source_of_factory',
  text: `UPDATE factory_sources s SET ${claiming} WHERE s.team_id = $2 AND s.factory_uid = $3 AND ${isFree} RETURNING ${columns}`,
  row,
});

/** Stores the outcome of a sync only if the sync still has its claim: the source was not replaced, and no other sync has taken over. */
const finish = defineStatement({
  name: 'finish_sync_of_source',
  text: `
    UPDATE factory_sources SET claim = NULL, claimed_until = NULL, checked_at = clock_timestamp(), last_at = clock_timestamp(),
      last_outcome = $3, last_commit = $4, last_message = $5, last_faults = $6, found_at = coalesce($7, found_at),
      applied_commit = CASE WHEN $3 = 'applied' THEN $4 ELSE applied_commit END
    WHERE factory_uid = $1 AND claim = $2 RETURNING factory_uid`,
  row: { factory_uid: text() },
});

/** SQL: true if the commit $3 is applied, and the last sync failed for a reason that no longer exists. */
const isInForceAgain = `(applied_commit = $3 AND last_outcome <> 'applied' AND NOT (last_outcome = 'faulty' AND last_commit = $3))`;

const finishUnchanged = defineStatement({
  name: 'finish_look_at_source',
  text: `
    UPDATE factory_sources SET claim = NULL, claimed_until = NULL, checked_at = clock_timestamp(), found_at = $4,
      last_at = CASE WHEN ${isInForceAgain} THEN clock_timestamp() ELSE last_at END,
      last_commit = CASE WHEN ${isInForceAgain} THEN $3 ELSE last_commit END,
      last_message = CASE WHEN ${isInForceAgain} THEN NULL ELSE last_message END,
      last_faults = CASE WHEN ${isInForceAgain} THEN NULL ELSE last_faults END,
      last_outcome = CASE WHEN ${isInForceAgain} THEN 'applied' ELSE last_outcome END
    WHERE factory_uid = $1 AND claim = $2`,
  row: {},
});

/**
 * Makes the source of factory $1 due if it is the pushed branch. $2, $3: owner and repository, in upper or lower case. $4: branch. $5:
 * whether $4 is the default branch. Locks the row only if it changes.
 */
const bringForward = defineStatement({
  name: 'bring_sync_of_source_forward',
  text: `
    UPDATE factory_sources SET due_at = greatest(clock_timestamp(), claimed_at + interval '${pushSeconds} seconds')
    WHERE factory_uid = $1 AND lower(owner) = lower($2) AND lower(repo) = lower($3)
      AND CASE WHEN branch IS NULL THEN $5 ELSE branch = $4 END
      AND due_at > greatest(clock_timestamp(), claimed_at + interval '${pushSeconds} seconds')`,
  row: {},
});

const release = defineStatement({
  name: 'release_claim_of_source',
  text: `
    UPDATE factory_sources SET claim = NULL, claimed_until = NULL, due_at = clock_timestamp() WHERE factory_uid = $1 AND claim = $2`,
  row: {},
});

const readIsOld = defineStatement({
  name: 'read_whether_sync_is_old',
  text: `SELECT $1::timestamptz < clock_timestamp() - $2 * interval '1 second' AS is_old`,
  row: { is_old: boolean },
});

/** Returns the source of a factory; null if the factory has no source, or the team has no such factory. */
export async function readSource(db: Queryable, teamId: string, factoryUid: string): Promise<SourceRow | null> {
  return (await db.query(readOne, [teamId, factoryUid]))[0] ?? null;
}

/** The source that a request sets. */
export type WantedSource = Pick<
  SourceRow,
  'owner' | 'repo' | 'branch' | 'folder' | 'poll_interval_seconds' | 'variables'
>;

/**
 * Stores the source of a factory and claims it. The caller has locked the factory. A sync that is in progress will not store anything.
 */
export async function writeSource(
  tx: Queryable,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  wanted: WantedSource,
  setByUid: string,
): Promise<ClaimedSource> {
  const claim = randomUUID();
  const { owner, repo, branch, folder, poll_interval_seconds: interval } = wanted;
  const variables = JSON.stringify(wanted.variables);
  const values = [claim, teamId, factoryUid, owner, repo, branch, folder, interval, setByUid, variables];
  const [source] = await tx.query(write, values);
  if (!source) throw new Error('the source was not stored');
  return { source, claim };
}

/** Deletes the source of a factory, and returns its `owner/repo`; null if the factory has no source. The caller has locked the factory. */
export async function removeSource(tx: Queryable, factoryUid: string): Promise<string | null> {
  return (await tx.query(remove, [factoryUid]))[0]?.repository ?? null;
}

/** A source that this process has claimed for a sync. */
export interface ClaimedSource {
  readonly source: SourceRow;
  readonly claim: string;
}

/** Claims sources that are due, so that only this process syncs them. */
export async function claimDueSources(db: Queryable): Promise<ClaimedSource[]> {
  const claim = randomUUID();
  return (await db.query(claimDue, [claim])).map((source) => ({ source, claim }));
}

/** Claims the source of a factory. Returns null if the factory has no source, or another sync of the factory is in progress. */
export async function claimSource(db: Queryable, teamId: string, factoryUid: string): Promise<ClaimedSource | null> {
  const claim = randomUUID();
  const [source] = await db.query(claimOne, [claim, teamId, factoryUid]);
  return source ? { source, claim } : null;
}

/** The result of a sync, in the form in which it is stored. `foundAt`: the clone URL of the repository after redirects. */
export interface Finished {
  readonly foundAt?: URL | undefined;
  readonly outcome: StoredOutcome;
  readonly commit?: string | undefined;
  readonly message?: string | undefined;
  readonly errors?: readonly FactorySyncFault[] | undefined;
}

/** Stores the outcome of a sync and ends its claim. Returns false and stores nothing if the sync has lost its claim. */
export async function finishSync(
  tx: Queryable,
  { source, claim }: ClaimedSource,
  { outcome, commit, message, errors, foundAt }: Finished,
): Promise<boolean> {
  const faults = errors === undefined ? null : JSON.stringify(errors);
  const place = foundAt === undefined ? null : placeOf(foundAt);
  const values = [source.factory_uid, claim, outcome, commit ?? null, message ?? null, faults, place];
  return (await tx.query(finish, values)).length > 0;
}

/** Ends a claim if the commit of the branch needs no sync. */
export async function finishLook(
  db: Queryable,
  { source, claim }: ClaimedSource,
  { commit, foundAt }: { readonly commit: string; readonly foundAt: URL },
): Promise<void> {
  await db.query(finishUnchanged, [source.factory_uid, claim, commit, placeOf(foundAt)]);
}

/** Ends a claim without an outcome, so that another process syncs at once. */
export async function releaseSource(db: Queryable, { source, claim }: ClaimedSource): Promise<void> {
  await db.query(release, [source.factory_uid, claim]);
}

/** A push to a branch of a repository. */
export interface Push {
  readonly owner: string;
  readonly repo: string;
  readonly branch: string;
  readonly isDefaultBranch: boolean;
}

/** Makes the source of a factory due if it is the pushed branch. The statement is sent together with COMMIT. */
export function bringSyncForward(tx: Transaction, factoryUid: string, push: Push): void {
  tx.atCommit(bringForward, [factoryUid, push.owner, push.repo, push.branch, push.isDefaultBranch]);
}

/** Returns whether a time is more than `seconds` ago by the clock of the database. */
export async function isOlderThan(db: Queryable, at: string, seconds: number): Promise<boolean> {
  return (await db.query(readIsOld, [at, seconds]))[0]?.is_old ?? false;
}
