/**
 * Keeps all blobs while an export runs. An export writes the rows of one moment and then the blobs of these rows, which takes minutes.
 * During this time, runs replace blobs, for example the archive of the workspace after each turn. Without this file, the replaced
 * blobs would be missing in the export.
 */
import type pg from 'pg';
import type { Queryable } from '../database/database.ts';
import { boolean, defineStatement } from '../database/statement.ts';
import { StoreUnavailable } from '../database/unavailable.ts';

/** Two arbitrary numbers of 32 bits, the same in all versions of Runyard. */
const lock = { first: 723_643_015, second: 1 };

/**
 * Begins to keep blobs, until `endExport` is called or the connection ends. Call this before the export begins its transaction. Then
 * the service deletes no blob that a row of the transaction's snapshot names.
 */
export async function beginExport(client: pg.ClientBase): Promise<void> {
  await client.query(`SET idle_session_timeout = 0; SELECT pg_advisory_lock_shared(${lock.first}, ${lock.second})`);
}

/** Stops keeping blobs. Throws if the connection was lost meanwhile, because blobs may have been deleted since then. */
export async function endExport(client: pg.ClientBase): Promise<void> {
  await client.query(`SELECT pg_advisory_unlock_shared(${lock.first}, ${lock.second})`).catch((error: Error) => {
    throw new Error(`The connection to the database was lost during the backup (${error.message}). Make it again.`, {
      cause: error,
    });
  });
}

const findExport = defineStatement({
  name: 'find_running_export',
  text: `
    SELECT EXISTS (
      SELECT FROM pg_locks
      WHERE locktype = 'advisory' AND classid = ${lock.first} AND objid = ${lock.second} AND objsubid = 2
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS "isRunning"`,
  row: { isRunning: boolean },
});

/**
 * Returns whether blobs may be deleted now: no export of the database runs. Ask only after the transaction that deletes the row of the
 * blob has ended, so that an export which begins later does not contain the row. The nightly sweep deletes the blobs that were kept.
 */
export async function noExportRuns(db: Queryable): Promise<boolean> {
  const [found] = await db.query(findExport).catch((error: unknown) => {
    // If the database is unreachable, keep the blob and do not fail. The caller has already done its work when it deletes blobs, and
    // the nightly sweep can delete this blob.
    if (error instanceof StoreUnavailable) return [{ isRunning: true }];
    throw error;
  });
  return found?.isRunning === false;
}
