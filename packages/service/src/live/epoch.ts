/** The epoch of transaction numbers: ids of team streams are compared within one, and those of another are refused. */
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { Database, Queryable } from '../store/database/database.ts';

/** The cluster, the database in it, and the timeline, which begins anew where a server was restored to an earlier time or a standby took over. */
const identity = `
  (SELECT system_identifier FROM pg_control_system())
  || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
  || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)`;

/** Its row, where it is of this database and no event is of a transaction that is still to come here. */
const readEpoch = `
  SELECT epoch FROM event_stream_epoch
  WHERE identity = ${identity}
    AND NOT EXISTS (SELECT FROM run_events WHERE xact > '0' AND xact >= pg_snapshot_xmax(pg_current_snapshot()))`;

const lock = 7_236_430_154_412_377n;

/**
 * The epoch of this database; a new one where it is a copy, or there is none yet. Then events of transactions that are
 * still to come lose their numbers: they would come again as new ones. That takes a while on a large import.
 */
export async function ensureEpoch(db: Database): Promise<string> {
  const known = await currentEpoch(db);
  return known ?? (await db.onOwnConnection(renewEpoch));
}

async function currentEpoch(db: Queryable): Promise<string | undefined> {
  const [row] = await db.query<{ epoch: string }>(readEpoch);
  return row?.epoch;
}

async function renewEpoch(client: pg.Client): Promise<string> {
  await client.query('BEGIN');
  await client.query('SELECT pg_advisory_xact_lock($1)', [lock]);
  // In a statement of its own, after the lock was given: another process may have been first.
  const { rows } = await client.query<{ epoch: string }>(readEpoch);
  const epoch = rows[0]?.epoch ?? randomBytes(8).toString('hex');
  if (rows.length === 0) {
    await client.query(`UPDATE run_events SET xact = '0' WHERE xact > '0' AND xact >= pg_current_xact_id()`);
    await client.query('DELETE FROM event_stream_marks');
    await client.query(
      `INSERT INTO event_stream_epoch (epoch, identity) VALUES ($1, ${identity})
       ON CONFLICT (is_only) DO UPDATE SET epoch = excluded.epoch, identity = excluded.identity`,
      [epoch],
    );
  }
  await client.query('COMMIT');
  return epoch;
}
