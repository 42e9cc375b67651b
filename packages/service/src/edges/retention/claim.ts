/** Claims work that only one process does each night. `sweeps` has a row for each kind of work, and the row contains the claim. */
import type { Database } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text, uuid } from '../../platform/store/database/statement.ts';

/** A claim that was not renewed for this time belongs to a process that died. */
const claimMinutes = 10;

/** The next 03:00 UTC. */
const nextNight = `date_trunc('day', clock_timestamp() - interval '3 hours') + interval '1 day 3 hours'`;

const claimUntil = `clock_timestamp() + interval '${claimMinutes} minutes'`;

/** Claims a sweep that is due. The first call for a sweep only creates its row, and the sweep is due in the next night. */
const claim = defineStatement({
  name: 'claim_sweep',
  text: `
    INSERT INTO sweeps AS s (name, next_at) VALUES ($1, ${nextNight})
    ON CONFLICT (name) DO UPDATE SET claimed_by = $2, claimed_until = ${claimUntil}
      WHERE s.next_at <= clock_timestamp() AND (s.claimed_until IS NULL OR s.claimed_until <= clock_timestamp())
    RETURNING claimed_by`,
  row: { claimed_by: nullable(uuid) },
});

const renew = defineStatement({
  name: 'renew_sweep',
  text: `UPDATE sweeps SET claimed_until = ${claimUntil} WHERE name = $1 AND claimed_by = $2 RETURNING name`,
  row: { name: text() },
});

const finish = defineStatement({
  name: 'finish_sweep',
  text: `
    UPDATE sweeps SET next_at = ${nextNight}, finished_at = clock_timestamp(), result = $3::jsonb, claimed_by = NULL, claimed_until = NULL
    WHERE name = $1 AND claimed_by = $2`,
  row: {},
});

const release = defineStatement({
  name: 'release_sweep',
  text: `
    UPDATE sweeps SET next_at = clock_timestamp() + make_interval(mins => $3::int), claimed_by = NULL, claimed_until = NULL
    WHERE name = $1 AND claimed_by = $2`,
  row: {},
});

/** A sweep that this process has claimed. */
export interface ClaimedSweep {
  /** Extends the claim. Returns false if another process has taken the sweep over. */
  renew(): Promise<boolean>;
  /** Stores the result. The sweep is due again in the next night. */
  finish(result: Readonly<Record<string, number>>): Promise<void>;
  /** Ends the claim. The sweep is due again after `inMinutes`. */
  release(inMinutes: number): Promise<void>;
}

/** Claims a sweep. Returns null if the sweep is not due, or if another process does it. `claimant` is a UUID of this attempt. */
export async function claimSweep(db: Database, name: string, claimant: string): Promise<ClaimedSweep | null> {
  const [row] = await db.query(claim, [name, claimant]);
  if (row?.claimed_by !== claimant) return null;
  return {
    renew: async () => (await db.query(renew, [name, claimant])).length > 0,
    finish: async (result) => void (await db.query(finish, [name, claimant, JSON.stringify(result)])),
    release: async (inMinutes) => void (await db.query(release, [name, claimant, inMinutes])),
  };
}
