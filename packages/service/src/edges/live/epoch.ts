/** The epoch of a database. The ids of team streams contain transaction numbers of PostgreSQL, which can be compared only within one
 * database. So ids also contain the epoch, and ids of another epoch are refused. */
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { Database } from '../../platform/store/database/database.ts';
import { defineStatement, type RowOf, text } from '../../platform/store/database/statement.ts';
import { forgetFutureTransactions } from '../../runs/executions/timeline/timeline.ts';
import { forgetFutureTransactionsOfDeliveries } from '../../triggers/webhooks/log/team-log.ts';

/**
 * Cluster, database and timeline of the server. A new timeline begins when a server is restored to an earlier time, or a standby becomes
 * the primary server.
 */
const identity = `
  (SELECT system_identifier FROM pg_control_system())
  || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
  || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)`;

/** Finds the epoch if it belongs to this database and no event has a transaction number that this database has not assigned yet. */
const readEpoch = defineStatement({
  name: 'read_event_stream_epoch',
  text: `
    SELECT epoch FROM event_stream_epoch
    WHERE identity = ${identity}
      AND NOT EXISTS (SELECT FROM run_events WHERE xact > '0' AND xact >= pg_snapshot_xmax(pg_current_snapshot()))
      AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE xact > '0' AND xact >= pg_snapshot_xmax(pg_current_snapshot()))`,
  row: { epoch: text() },
});

const deleteMarks = defineStatement({
  name: 'delete_event_stream_marks',
  text: 'DELETE FROM event_stream_marks',
  row: {},
});

const keepEpoch = defineStatement({
  name: 'keep_event_stream_epoch',
  text: `
    INSERT INTO event_stream_epoch (epoch, identity) VALUES ($1, ${identity})
    ON CONFLICT (is_only) DO UPDATE SET epoch = excluded.epoch, identity = excluded.identity`,
  row: {},
});

const lock = 7_236_430_154_412_377n;

/**
 * Returns the epoch of this database. Creates a new one if there is none or if the database is a copy. In a copy of a database, events may
 * have transaction numbers that the copy has not assigned yet. This function removes these numbers, because streams would deliver the
 * events again when the copy reaches the numbers. The removal takes time after a large import.
 */
export async function ensureEpoch(db: Database): Promise<string> {
  const [known] = await db.query(readEpoch);
  return known?.epoch ?? (await db.onOwnConnection(renewEpoch));
}

async function renewEpoch(client: pg.Client): Promise<string> {
  await client.query('BEGIN');
  await client.query('SELECT pg_advisory_xact_lock($1)', [lock]);
  // Read again after the lock, because another process may have created the epoch while this process waited for the lock.
  const { rows } = await client.query<RowOf<typeof readEpoch>>(readEpoch.text);
  const epoch = rows[0]?.epoch ?? randomBytes(8).toString('hex');
  if (rows.length === 0) {
    await client.query(forgetFutureTransactions.text);
    await client.query(forgetFutureTransactionsOfDeliveries.text);
    await client.query(deleteMarks.text);
    await client.query(keepEpoch.text, [epoch]);
  }
  await client.query('COMMIT');
  return epoch;
}
