/** Work that is due once a night, by whichever process comes first: `sweeps` has a row for it, and a claim on the row. */
import type { Database, Statement } from '../store/database/database.ts';

/** A claim that was not renewed for so long belongs to a process that died. */
const claimMinutes = 10;

/** 03:00 UTC, tomorrow's where today's is over. */
const nextNight = `date_trunc('day', clock_timestamp() - interval '3 hours') + interval '1 day 3 hours'`;

const claimUntil = `clock_timestamp() + interval '${claimMinutes} minutes'`;

/** The first process to ask makes the row, for the next night. */
const claim: Statement = {
  name: 'claim_sweep',
  text: `
    INSERT INTO sweeps AS s (name, next_at) VALUES ($1, ${nextNight})
    ON CONFLICT (name) DO UPDATE SET claimed_by = $2, claimed_until = ${claimUntil}
      WHERE s.next_at <= clock_timestamp() AND (s.claimed_until IS NULL OR s.claimed_until <= clock_timestamp())
    RETURNING claimed_by`,
};

const renew: Statement = {
  name: 'renew_sweep',
  text: `UPDATE sweeps SET claimed_until = ${claimUntil} WHERE name = $1 AND claimed_by = $2 RETURNING name`,
};

const finish: Statement = {
  name: 'finish_sweep',
  text: `
    UPDATE sweeps SET next_at = ${nextNight}, finished_at = clock_timestamp(), result = $3::jsonb, claimed_by = NULL, claimed_until = NULL
    WHERE name = $1 AND claimed_by = $2`,
};

const release: Statement = {
  name: 'release_sweep',
  text: `
    UPDATE sweeps SET next_at = clock_timestamp() + make_interval(mins => $3::int), claimed_by = NULL, claimed_until = NULL
    WHERE name = $1 AND claimed_by = $2`,
};

/** A sweep that this process, and no other, is doing. */
export interface ClaimedSweep {
  /** False: another process has taken it over. */
  renew(): Promise<boolean>;
  /** It is done until the next night. */
  finish(result: Readonly<Record<string, number>>): Promise<void>;
  /** It is due again after so many minutes. */
  release(inMinutes: number): Promise<void>;
}

/** Null: it is not due, or another process is doing it. `claimant` is a UUID of this attempt. */
export async function claimSweep(db: Database, name: string, claimant: string): Promise<ClaimedSweep | null> {
  const [row] = await db.query<{ claimed_by: string | null }>(claim, [name, claimant]);
  if (row?.claimed_by !== claimant) return null;
  return {
    renew: async () => (await db.query(renew, [name, claimant])).length > 0,
    finish: async (result) => void (await db.query(finish, [name, claimant, JSON.stringify(result)])),
    release: async (inMinutes) => void (await db.query(release, [name, claimant, inMinutes])),
  };
}
