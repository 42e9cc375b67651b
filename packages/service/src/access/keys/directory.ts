import { timingSafeEqual } from 'node:crypto';
import type { Logger } from 'pino';
import type { Database, Statement } from '../../store/database/database.ts';
import type { Principal } from './principal.ts';
import { hashKey } from './raw-key.ts';
import { isValidKey } from './valid-key.ts';

/** Channel on which a deleted key is told to all processes. */
export const keysChannel = 'runyard_keys';

/** Finds the principal of a raw key. */
export interface KeyDirectory {
  /** Null: malformed, unknown, deleted or expired. Notes the use of the key. */
  authenticate(raw: string): Promise<Principal | null>;
  close(): void;
}

const readKey: Statement = {
  name: 'read_api_key',
  text: `
    SELECT k.id, k.hash, k.kind, k.name, k.team_id, t.uid AS team_uid, k.agent_uid, k.is_operator, k.expires_at,
      u.uid AS user_uid, u.display_name, u.email, m.role
    FROM api_keys k
    JOIN teams t ON t.id = k.team_id
    LEFT JOIN users u ON u.id = k.user_id
    LEFT JOIN team_members m ON m.team_id = k.team_id AND m.user_id = k.user_id
    WHERE k.hash = $1 AND ${isValidKey('k')}`,
};

/** At most one write a minute for a key, over all processes. */
const noteUse: Statement = {
  name: 'note_api_key_use',
  text: `UPDATE api_keys SET last_used_at = now() WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`,
};

interface KeyRow {
  id: string;
  hash: Buffer;
  kind: 'personal' | 'agent';
  name: string;
  team_id: string;
  team_uid: string;
  agent_uid: string | null;
  is_operator: boolean;
  expires_at: string | null;
  user_uid: string | null;
  display_name: string | null;
  email: string | null;
  role: 'admin' | 'member' | null;
}

function principalOf(row: KeyRow): Principal {
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
    kind: row.kind,
    teamId: row.team_id,
    teamUid: row.team_uid,
    creator,
    role: row.role ?? 'member',
    isOperator: row.is_operator,
  };
}

interface Known {
  readonly principal: Principal;
  readonly expiresAtMs: number;
  readonly readAtMs: number;
  usedAtMs: number;
}

const maxKnown = 10_000;
/**
 * How long a key is believed without asking again. A deletion arrives by NOTIFY within milliseconds; this bounds what a
 * process believes whose listening connection died without a sign.
 */
const believeMs = 5_000;
const noteEveryMs = 60_000;

/** Opens the look-up of keys with its cache, which deletions in any process clear. `now` is in milliseconds. */
export async function openKeyDirectory(db: Database, log: Logger, now: () => number = Date.now): Promise<KeyDirectory> {
  const known = new Map<string, Known>();
  // Counts the clearings: what was read before one is not kept after it.
  let generation = 0;
  const forget = (keyId?: string) => {
    generation += 1;
    if (!keyId) known.clear();
    else for (const [hash, entry] of known) if (entry.principal.keyId === keyId) known.delete(hash);
  };
  const stop = await db.listen(keysChannel, forget, forget);

  const note = (entry: Known) => {
    if (now() - entry.usedAtMs < noteEveryMs) return;
    entry.usedAtMs = now();
    db.query(noteUse, [entry.principal.keyId]).catch((error) => {
      log.warn({ err: error, key_id: entry.principal.keyId }, 'the use of a key was not noted');
    });
  };

  const read = async (hash: Buffer, name: string): Promise<Known | null> => {
    const before = generation;
    const [row] = await db.query<KeyRow>(readKey, [hash]);
    if (!row || !timingSafeEqual(row.hash, hash)) return null;
    const entry: Known = {
      principal: principalOf(row),
      expiresAtMs: row.expires_at ? Date.parse(row.expires_at) : Number.POSITIVE_INFINITY,
      readAtMs: now(),
      usedAtMs: known.get(name)?.usedAtMs ?? 0,
    };
    if (before === generation) {
      if (known.size >= maxKnown) known.clear();
      known.set(name, entry);
    }
    return entry;
  };

  return {
    authenticate: async (raw) => {
      const hash = hashKey(raw);
      const name = hash.toString('base64');
      const cached = known.get(name);
      const entry = cached && now() - cached.readAtMs < believeMs ? cached : await read(hash, name);
      if (!entry || entry.expiresAtMs <= now()) {
        known.delete(name);
        return null;
      }
      note(entry);
      return entry.principal;
    },
    close: stop,
  };
}
