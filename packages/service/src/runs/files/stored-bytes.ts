/**
 * Limits the bytes that a team stores. These are the requests of runs with their attachments, follow-ups, events and transcripts,
 * artifacts, saved workspaces and memories, and handoffs. Database triggers count the bytes in the transaction that stores or deletes them.
 */
import type { UsageReport } from '@runyard/contract/team/budgets';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { type Reading, reading } from '../../platform/metrics/gauges.ts';
import { brieflyKnown } from '../../platform/store/database/briefly-known.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, numeric, uuid } from '../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../executions/deps.ts';

/** SQL: the bytes that a team stores. */
export const bytesOfTeam = (teamId: string): string => `(
  coalesce((SELECT bytes FROM team_storage WHERE team_id = ${teamId}), 0)
  + coalesce((SELECT sum(bytes) FROM storage_changes WHERE team_id = ${teamId}), 0))`;

const readStored = defineStatement({
  name: 'read_stored_bytes_of_team',
  text: `SELECT ${bytesOfTeam('$1')} AS stored`,
  row: { stored: numeric },
});

/** `team_storage` has one row for each team. The sum does not include the changes of the last seconds. */
const sumStored = defineStatement({
  name: 'sum_stored_bytes',
  text: 'SELECT coalesce(sum(bytes), 0) AS stored FROM team_storage',
  row: { stored: numeric },
});

/** Reads the bytes that all teams store. */
export async function measureStored(db: Queryable): Promise<Reading[]> {
  const [row] = await db.query(sumStored);
  return [reading('runyard_stored_bytes', {}, Number(row?.stored ?? 0))];
}

type LimitDeps = Pick<ExecutionDeps, 'db' | 'limits'>;

async function storedBy(db: Queryable, teamId: string): Promise<number> {
  const [row] = await db.query(readStored, [teamId]);
  return Number(row?.stored ?? 0);
}

/** Returns the bytes that the team stores, and their limit. */
export const storageUseOf = async (
  { db, limits }: LimitDeps,
  teamId: string,
): Promise<NonNullable<UsageReport['storage']>> => ({
  bytes: await storedBy(db, teamId),
  max_bytes: limits.teamBytes,
});

const readRoom = defineStatement({
  name: 'read_room_of_workspace',
  text: `
    SELECT e.workspace_bytes AS own, ${bytesOfTeam('e.team_id')} AS stored FROM executions e WHERE e.id = $1`,
  row: { own: nullable(integer), stored: numeric },
});

/**
 * Returns the maximum size of a new archive of the execution, and the number of bytes that the team stores. The new archive replaces the
 * execution's earlier archive, so the bytes of the earlier archive do not count.
 */
export async function roomOfWorkspace(
  { db, limits }: LimitDeps,
  executionId: string,
): Promise<{ readonly bytes: number; readonly stored: number }> {
  const [row] = await db.query(readRoom, [executionId]);
  const stored = Number(row?.stored ?? 0);
  return { bytes: Math.max(0, limits.teamBytes - stored + (row?.own ?? 0)), stored };
}

/**
 * Returns the bytes that a team stores: a count from the database that is at most a second old, plus the bytes that this process has stored
 * since then.
 */
const readUse = brieflyKnown<LimitDeps, { stored: number }>(1000, async (db, teamId) => ({
  stored: await storedBy(db, teamId),
}));

/** Numbers of bytes that a team may still store. */
export interface TeamRoom {
  /** Number of bytes that the team may still store as files, transcripts and long texts. */
  readonly files: number;
  /**
   * Number of bytes that the team may still store as short texts and essential events. These may exceed the team's limit by a sixteenth, so
   * that people can still start, answer and end runs when the files of the team have reached the limit.
   */
  readonly texts: number;
  readonly stored: number;
  /** Counts bytes that the caller is about to store. */
  take(bytes: number): void;
}

/**
 * Returns how much the team may still store. Bytes that other processes or unfinished transactions have stored in the last second may not
 * be counted yet.
 */
export async function readTeamRoom(deps: LimitDeps, tx: Queryable | undefined, teamId: string): Promise<TeamRoom> {
  const use = await readUse(deps, tx, teamId);
  return {
    ...roomOf(deps, use.stored),
    stored: use.stored,
    take(bytes) {
      use.stored += bytes;
    },
  };
}

/** Returns how much a team that stores `stored` bytes may still store. */
export function roomOf({ limits }: Pick<LimitDeps, 'limits'>, stored: number): Pick<TeamRoom, 'files' | 'texts'> {
  const { teamBytes } = limits;
  return {
    files: Math.max(0, teamBytes - stored),
    texts: Math.max(0, teamBytes + Math.floor(teamBytes / 16) - stored),
  };
}

/** Answer 413: the team's storage limit does not allow the bytes. */
export interface StorageRefusal {
  readonly kind: 'storage_full';
  readonly detail: string;
}

/** If a request has no files and its texts have at most this size, they count against `texts`; larger texts count against `files`. */
const maxShortText = 16 * 1024;

/**
 * Returns the refusal for bytes that would exceed the storage limit of a team. `stored`: bytes that the team stores now. `what`: a sentence
 * that is put before the text of the refusal.
 */
export const teamFull = ({ limits }: Pick<LimitDeps, 'limits'>, stored: number, what = ''): StorageRefusal => ({
  kind: 'storage_full',
  detail: `${what}The team stores ${formatBytes(stored)}, and may store ${formatBytes(limits.teamBytes)} (RUNYARD_TEAM_STORAGE_MB). Delete runs or artifacts, or ask the operator to raise the setting.`,
});

/**
 * Counts the texts and files of a request as stored. If the team's storage limit does not allow them, returns the refusal, otherwise null.
 */
export async function takeRoomForRequest(
  deps: LimitDeps,
  tx: Queryable | undefined,
  teamId: string,
  { texts, fileBytes }: { readonly texts: readonly string[]; readonly fileBytes: readonly number[] },
): Promise<StorageRefusal | null> {
  const ofTexts = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const bytes = fileBytes.reduce((sum, size) => sum + size, ofTexts);
  const room = await readTeamRoom(deps, tx, teamId);
  const isShort = fileBytes.length === 0 && ofTexts <= maxShortText;
  if (bytes > (isShort ? room.texts : room.files))
    return teamFull(deps, room.stored, `The request has ${formatBytes(bytes)} with its attachments. `);
  room.take(bytes);
  return null;
}

/** Finds counted changes of bytes that are not yet added to the totals of the teams. */
export const findChanges = defineStatement({
  name: 'find_storage_changes',
  text: 'SELECT team_id FROM storage_changes LIMIT 1',
  row: { team_id: uuid },
});

const foldChanges = defineStatement({
  name: 'fold_storage_changes',
  text: `
    WITH taken AS (
      DELETE FROM storage_changes WHERE ctid = ANY(ARRAY(SELECT ctid FROM storage_changes LIMIT 20000 FOR UPDATE SKIP LOCKED))
      RETURNING team_id, bytes
    )
    INSERT INTO team_storage AS t (team_id, bytes) SELECT team_id, sum(bytes) FROM taken GROUP BY team_id ORDER BY team_id
    ON CONFLICT (team_id) DO UPDATE SET bytes = t.bytes + excluded.bytes`,
  row: {},
});

/** Adds the changes of the last seconds to the totals of the teams, so that few rows have to be read to know how much a team stores. */
export async function foldStorageChanges(db: Queryable): Promise<void> {
  await db.query(foldChanges);
}

const recount = defineStatement({
  name: 'recount_team_storage',
  text: 'SELECT recount_team_storage() AS wrong',
  row: { wrong: integer },
});

/** Compares the totals with the stored rows and corrects wrong totals. Returns the number of teams whose total was wrong. */
export async function recountStorage(db: Database): Promise<{ readonly rows: number; readonly more: boolean }> {
  const [row] = await db.query(recount);
  return { rows: row?.wrong ?? 0, more: false };
}
