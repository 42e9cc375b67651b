import { timingSafeEqual } from 'node:crypto';
import type { KeyKind } from '@runyard/contract/team/keys';
import type { KeyLimit, Role } from '@runyard/contract/wire/access';
import type { Logger } from 'pino';
import type { Database } from '../../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  float,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUid } from '../teams/uid.ts';
import { hashKey, isSession, isValidKey, keysChannel } from './key.ts';
import type { Principal } from './principal.ts';

/** The key of a worker, and the pools that it serves. */
export interface KeyOfWorker extends Principal {
  /** `hosted`: the worker serves only the hosted pool. `team`: the pools of its team. `all`: both. */
  readonly serves: 'hosted' | 'all' | 'team';
}

/** Finds the principal of a raw key. */
export interface KeyDirectory {
  /**
   * Returns the owner of the key, and records the time of its use; null if the key is malformed, unknown, deleted or expired, or is only
   * for workers.
   */
  authenticate(raw: string): Promise<Principal | null>;
  /** Like `authenticate`, but for the key with which a worker connects. */
  authenticateWorker(raw: string): Promise<KeyOfWorker | null>;
  /**
   * Returns the person of a personal key or of a session, with the role that the person has in another team; null if the person is not in
   * that team.
   */
  inTeam(principal: Principal, teamUid: string): Promise<Principal | null>;
  close(): void;
}

const readKey = defineStatement({
  name: 'read_api_key',
  text: `
    SELECT k.id, k.hash, k.kind, k.name, k.team_id, t.uid AS team_uid, k.agent_uid, k.is_operator, k.limited_to,
      (extract(epoch FROM k.expires_at - clock_timestamp()) * 1000)::float8 AS remaining_ms,
      ${isSession('k')} AS is_session, k.expires_at, k.created_at > clock_timestamp() - interval '1 hour' AS is_recent,
      u.uid AS user_uid, u.display_name, u.email, m.role
    FROM api_keys k
    JOIN teams t ON t.id = k.team_id
    LEFT JOIN users u ON u.id = k.user_id
    LEFT JOIN team_members m ON m.team_id = k.team_id AND m.user_id = k.user_id
    WHERE k.hash = $1 AND ${isValidKey('k')}`,
  row: {
    id: uuid,
    hash: bytes,
    kind: text<KeyKind>(),
    name: text(),
    team_id: uuid,
    team_uid: text(),
    agent_uid: nullable(text()),
    is_operator: boolean,
    limited_to: nullable(text<KeyLimit>()),
    is_session: boolean,
    is_recent: boolean,
    expires_at: nullable(timestamp),
    remaining_ms: nullable(float),
    user_uid: nullable(text()),
    display_name: nullable(text()),
    email: nullable(text()),
    role: nullable(text<Role>()),
  },
});

const readMembership = defineStatement({
  name: 'read_membership',
  text: `
    SELECT t.id, t.uid, m.role FROM team_members m JOIN teams t ON t.id = m.team_id JOIN users u ON u.id = m.user_id
    WHERE u.uid = $1 AND t.uid = $2`,
  row: { id: uuid, uid: text(), role: text<Role>() },
});

/** Writes the time of use at most once a minute for each key, even if several processes see requests. */
const noteUse = defineStatement({
  name: 'note_api_key_use',
  text: `UPDATE api_keys SET last_used_at = now() WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`,
  row: {},
});

function principalOf(row: RowOf<typeof readKey>): Principal {
  const creator =
    row.kind === 'personal' && row.user_uid
      ? {
          kind: 'user' as const,
          uid: row.user_uid,
          displayName: row.display_name ?? row.user_uid,
          ...(row.email ? { email: row.email } : {}),
        }
      : { kind: 'service_account' as const, uid: row.agent_uid ?? row.id, displayName: row.name };
  return {
    keyId: row.id,
    kind: row.is_session ? 'session' : row.kind === 'personal' ? 'user' : 'agent',
    teamId: row.team_id,
    teamUid: row.team_uid,
    creator,
    role: row.role ?? 'member',
    isOperator: row.is_operator,
    ...(row.limited_to ? { limitedTo: row.limited_to } : {}),
    ...(row.is_session && row.expires_at
      ? { browserSession: { expiresAt: row.expires_at, isRecent: row.is_recent } }
      : {}),
    from: null,
  };
}

interface Membership {
  readonly principal: Principal;
  readonly readAtMs: number;
}

interface Known {
  readonly principal: Principal;
  /** The key can only connect workers of the hosted pool. */
  readonly isForWorkers: boolean;
  readonly expiresAtMs: number;
  readonly readAtMs: number;
  usedAtMs: number;
}

const maxKnown = 10_000;
/**
 * How long a cached key is used without a new look-up. A deletion arrives by NOTIFY within milliseconds; this limit is for a process whose
 * listening connection was lost without an error.
 */
const cachedMs = 5_000;
const noteEveryMs = 60_000;

/**
 * Creates the look-up of keys, which has a cache. The cache drops a key when any process deletes it. `now` returns milliseconds since an
 * arbitrary moment. The clock of the database decides when a key expires.
 */
export async function openKeyDirectory(
  db: Database,
  log: Logger,
  now: () => number = () => performance.now(),
): Promise<KeyDirectory> {
  const known = new Map<string, Known>();
  /** The entries of this map are found by the UIDs of person and team, together with the API key. */
  const memberships = new Map<string, Membership>();
  // Counts how often entries were removed from the cache. A row that was read from the database before such a removal must not be cached
  // after it.
  let generation = 0;
  const forget = (keyId?: string) => {
    generation += 1;
    memberships.clear();
    if (!keyId) known.clear();
    else for (const [hash, entry] of known) if (entry.principal.keyId === keyId) known.delete(hash);
  };
  const stop = await db.listen(keysChannel, forget, forget);

  const note = (entry: Known) => {
    if (now() - entry.usedAtMs < noteEveryMs) return;
    entry.usedAtMs = now();
    db.query(noteUse, [entry.principal.keyId]).catch((error) => {
      log.warn({ err: error, key_id: entry.principal.keyId }, 'the time at which a key was used could not be stored');
    });
  };

  const read = async (hash: Buffer, name: string): Promise<Known | null> => {
    const before = generation;
    const readAtMs = now();
    const [row] = await db.query(readKey, [hash]);
    if (!row || !timingSafeEqual(row.hash, hash)) return null;
    const entry: Known = {
      principal: principalOf(row),
      isForWorkers: row.kind === 'worker',
      expiresAtMs: readAtMs + (row.remaining_ms ?? Number.POSITIVE_INFINITY),
      readAtMs,
      usedAtMs: known.get(name)?.usedAtMs ?? Number.NEGATIVE_INFINITY,
    };
    if (before === generation) {
      if (known.size >= maxKnown) known.clear();
      known.set(name, entry);
    }
    return entry;
  };

  const find = async (raw: string): Promise<Known | null> => {
    const hash = hashKey(raw);
    const name = hash.toString('base64');
    const cached = known.get(name);
    const entry = cached && now() - cached.readAtMs < cachedMs ? cached : await read(hash, name);
    if (entry && entry.expiresAtMs > now()) return entry;
    known.delete(name);
    return null;
  };

  const readInTeam = async (principal: Principal, teamUid: string, name: string): Promise<Principal | null> => {
    const before = generation;
    const [row] = await db.query(readMembership, [principal.creator.uid, teamUid]);
    if (!row) return null;
    const found = { ...principal, teamId: row.id, teamUid: row.uid, role: row.role };
    if (before === generation) {
      if (memberships.size >= maxKnown) memberships.clear();
      memberships.set(name, { principal: found, readAtMs: now() });
    }
    return found;
  };

  return {
    inTeam: async (principal, teamUid) => {
      if (principal.creator.kind !== 'user' || !isUid(teamUid)) return null;
      const name = `${principal.keyId} ${teamUid}`;
      const cached = memberships.get(name);
      const isFresh = cached !== undefined && now() - cached.readAtMs < cachedMs;
      return isFresh ? cached.principal : await readInTeam(principal, teamUid, name);
    },
    authenticate: async (raw) => {
      const entry = await find(raw);
      if (!entry || entry.isForWorkers) return null;
      note(entry);
      return entry.principal;
    },
    authenticateWorker: async (raw) => {
      const entry = await find(raw);
      if (!entry || entry.principal.limitedTo !== undefined) return null;
      note(entry);
      const { principal, isForWorkers } = entry;
      return { ...principal, serves: isForWorkers ? 'hosted' : principal.isOperator ? 'all' : 'team' };
    },
    close: stop,
  };
}
