/** Test support: inserts API keys with any role, team, kind and time of expiry. */
import { randomUUIDv7 } from 'node:crypto';
import type { Role } from '@runyard/contract/wire/access';
import type { Queryable } from '../src/platform/store/database/database.ts';
import { hashKey, newRawKey, shownParts } from '../src/team/access/keys/key.ts';
import { newUid } from '../src/team/access/teams/uid.ts';

export interface KeyOptions {
  readonly teamId?: string;
  readonly kind?: 'personal' | 'agent' | 'worker';
  readonly role?: Role;
  /** When the key expires, counted from now: an interval in SQL, such as `-1 minute`. */
  readonly expiresIn?: string;
}

/** Inserts a key and returns it in clear text. For a personal key, also inserts a person. `defaultTeamId`: used if the options name no team. */
export async function insertKey(db: Queryable, defaultTeamId: string, key: KeyOptions): Promise<string> {
  const raw = newRawKey();
  const team = key.teamId ?? defaultTeamId;
  const kind = key.kind ?? 'personal';
  const userId = randomUUIDv7();
  if (kind === 'personal') {
    await db.query('INSERT INTO users (id, uid, display_name) VALUES ($1, $2, $3)', [userId, newUid(), 'A person']);
    const member = [team, userId, key.role ?? 'admin'];
    await db.query('INSERT INTO team_members (team_id, user_id, role) VALUES ($1, $2, $3)', member);
  }
  const { prefix, lastFour } = shownParts(raw);
  const person = kind === 'personal' ? userId : null;
  await db.query(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four, expires_at)
     VALUES ($1, $2, $3, 'A key', $4, $5, $6, $7, now() + $8::interval)`,
    [randomUUIDv7(), hashKey(raw), kind, team, person, prefix, lastFour, key.expiresIn ?? null],
  );
  return raw;
}
