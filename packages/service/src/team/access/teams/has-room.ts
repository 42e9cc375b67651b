import { reserveForOwners, shareOfRole } from '@runyard/contract/limits';
import type { Role } from '@runyard/contract/wire/access';
import type { Queryable } from '../../../platform/store/database/database.ts';

/** A table in which the number of rows of a team is limited. */
interface LimitedTable {
  /** Name of the rows for people. */
  readonly things: string;
  /** SQL: the row was created by the caller with the UID $3. Absent: only administrators create rows, so there is no share of one caller. */
  readonly isOwn?: string;
  /** SQL: further condition of the rows that count. */
  readonly counts?: string;
}

const limited = {
  agent_identities: { things: 'agent identities' },
  // Browser sessions have a separate limit.
  api_keys: {
    things: 'API keys',
    isOwn: 'coalesce(created_by_uid, (SELECT u.uid FROM users u WHERE u.id = user_id)) = $3',
    counts: 'minted_by IS NULL AND signed_on_by IS NULL AND passkey_id IS NULL',
  },
  environments: { things: 'environments', isOwn: 'creator_uid = $3' },
  event_subscriptions: { things: 'event subscriptions' },
  factories: { things: 'factories', isOwn: 'creator_uid = $3' },
  mcp_servers: { things: 'MCP servers', isOwn: 'creator_uid = $3' },
  // The schedules of automations are limited by the number of automations.
  schedules: { things: 'schedules', isOwn: 'creator_uid = $3', counts: 'automation_uid IS NULL' },
  team_invitations: { things: 'invitations', isOwn: 'invited_by = (SELECT u.id FROM users u WHERE u.uid = $3)' },
  worker_pools: { things: 'worker pools', isOwn: 'owner_uid = $3' },
} satisfies Readonly<Record<string, LimitedTable>>;

type Limited = keyof typeof limited;

interface Creator {
  readonly teamId: string;
  /** Null: the service itself, which has the share of an owner. */
  readonly creator: { readonly kind: 'user' | 'service_account'; readonly uid: string } | null;
}

/**
 * Thrown if a caller who is not an owner has created the maximum number of rows for one caller, or if only the rows reserved for owners are
 * left. The caller of the function must roll the transaction back; the answer is 409.
 */
export class ShareTaken extends Error {
  constructor(things: string, max: number, share: number | undefined) {
    const reserve = reserveForOwners * 100;
    super(
      share === undefined
        ? `The team has nearly all of its ${max} ${things}; the last ${reserve} % are for owners. Delete some, or ask an owner.`
        : `You have made ${share} of the team's ${max} ${things}, as many as one caller with your role may. Delete some, or ask an owner.`,
    );
  }
}

/** Waits for a lock for this table and team, and holds the lock until the transaction ends. */
export async function lockRows(tx: Queryable, teamId: string, table: Limited | 'team_members'): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${table} of ${teamId}`]);
}

/** Returns whether the team has fewer than `max` members. Call this function in the transaction that adds a member, like `teamHasRoom`. */
export async function teamHasRoomForMember(tx: Queryable, teamId: string, max: number): Promise<boolean> {
  await lockRows(tx, teamId, 'team_members');
  const [count] = await tx.query<{ room: boolean }>(
    'SELECT count(*) < $2 AS room FROM team_members WHERE team_id = $1',
    [teamId, max],
  );
  return count?.room ?? false;
}

/**
 * Returns whether the team has fewer than `max` rows in the table. Call this function in the transaction that adds a row. It holds a lock
 * until the transaction ends, so that the later of two concurrent creates also counts the row of the earlier one.
 * @throws ShareTaken
 */
export async function teamHasRoom(tx: Queryable, by: Creator, table: Limited, max: number): Promise<boolean> {
  const { things, isOwn = 'false', counts = 'true' }: LimitedTable = limited[table];
  const { teamId, creator } = by;
  await lockRows(tx, teamId, table);
  const [count] = await tx.query<{ all: number; own: number; role: Role | null }>(
    `SELECT count(*)::int AS all, count(*) FILTER (WHERE ${isOwn})::int AS own, (
       SELECT m.role FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = $1 AND $2 = 'user' AND u.uid = $3) AS role
     FROM ${table} WHERE team_id = $1 AND ${counts}`,
    [teamId, creator?.kind ?? null, creator?.uid ?? null],
  );
  if (count === undefined || count.all >= max) return false;
  const role = creator === null ? 'owner' : (count.role ?? 'member');
  const share = Math.ceil(max * shareOfRole[role]);
  if (role === 'owner') return true;
  if (count.own >= share) throw new ShareTaken(things, max, share);
  if (count.all >= max - Math.ceil(max * reserveForOwners)) throw new ShareTaken(things, max, undefined);
  return true;
}
