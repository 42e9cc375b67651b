/** The one row about the installation as a whole. All service processes of a database share it. */
import { randomUUIDv7 } from 'node:crypto';
import type pg from 'pg';
import type { Queryable } from '../store/database/database.ts';
import { boolean, defineStatement, nullable, text, timestamp, uuid } from '../store/database/statement.ts';

const insertRow = defineStatement({
  name: 'insert_installation',
  text: 'INSERT INTO installation (id) VALUES ($1) ON CONFLICT (is_only) DO NOTHING',
  row: {},
});

const lockRow = defineStatement({
  name: 'lock_installation',
  text: `
    SELECT id, has_marked_blobs AS "hasMarkedBlobs", vault_key_id AS "vaultKeyId", bootstrapped_at IS NOT NULL AS "isBootstrapped"
    FROM installation WHERE is_only FOR UPDATE`,
  row: { id: uuid, hasMarkedBlobs: boolean, vaultKeyId: nullable(text()), isBootstrapped: boolean },
});

export interface Installation {
  readonly id: string;
  /** True: a service has written the id of the installation into the blob store of the installation. */
  readonly hasMarkedBlobs: boolean;
  /** Id of the key that encrypts secrets; null: no service has used a key yet. */
  readonly vaultKeyId: string | null;
  readonly isBootstrapped: boolean;
}

/** Returns the row and locks it until the end of the transaction. Inserts the row if it does not exist. */
export async function lockInstallation(tx: Queryable): Promise<Installation> {
  await tx.query(insertRow, [randomUUIDv7()]);
  const [row] = await tx.query(lockRow);
  if (row === undefined) throw new Error('the row of the installation is missing');
  return row;
}

/** Stores which key encrypts secrets; null: the next service that starts stores its own key id. */
export async function setVaultKey(tx: Queryable, keyId: string | null): Promise<void> {
  await tx.query('UPDATE installation SET vault_key_id = $1', [keyId]);
}

/** Stores that the blob store now contains the id of the installation. */
export async function setBlobsMarked(tx: Queryable): Promise<void> {
  await tx.query('UPDATE installation SET has_marked_blobs = true');
}

/** Stores that the bootstrap key was made. */
export async function setBootstrapped(tx: Queryable): Promise<void> {
  await tx.query('UPDATE installation SET bootstrapped_at = now() WHERE bootstrapped_at IS NULL');
}

/** Pauses all service processes that use this database. They start no queued run or schedule and deliver nothing until `resumeInstallation`. */
export async function pauseInstallation(tx: Queryable): Promise<void> {
  await tx.query('UPDATE installation SET paused_at = now() WHERE paused_at IS NULL');
}

/**
 * Gives the installation a new id and pauses it, in the transaction that fills its tables from a backup. So the restored copy does not
 * start runs in parallel with the original installation, and never uses the blobs of the original. Does nothing if the schema is older than the
 * table of the installation.
 */
export async function separateCopy(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ exists: boolean }>(`SELECT to_regclass('installation') IS NOT NULL AS exists`);
  if (rows[0]?.exists !== true) return;
  await client.query(
    'UPDATE installation SET id = gen_random_uuid(), has_marked_blobs = false, paused_at = coalesce(paused_at, now())',
  );
}

const readBackup = defineStatement({
  name: 'read_last_backup',
  text: 'SELECT backed_up_at AS "backedUpAt" FROM installation WHERE is_only AND backed_up_at IS NOT NULL',
  row: { backedUpAt: timestamp },
});

/** Stores the time at which the last completed backup read the tables; null: there was no backup. */
export async function setBackedUp(db: Queryable, at: string | null): Promise<void> {
  await db.query('UPDATE installation SET backed_up_at = $1', [at]);
}

/** Returns the time at which the last completed backup read the tables; null: there was no backup. */
export async function readBackedUpAt(db: Queryable): Promise<string | null> {
  const [row] = await db.query(readBackup);
  return row?.backedUpAt ?? null;
}

/** Ends the pause. Returns false if the installation was not paused. */
export async function resumeInstallation(tx: Queryable): Promise<boolean> {
  const ended = await tx.query('UPDATE installation SET paused_at = NULL WHERE paused_at IS NOT NULL RETURNING id');
  return ended.length > 0;
}

const readPause = defineStatement({
  name: 'read_pause_of_installation',
  text: 'SELECT paused_at AS "pausedAt" FROM installation WHERE is_only AND paused_at IS NOT NULL',
  row: { pausedAt: timestamp },
});

/** Returns since when the installation is paused; null if it is not. */
export async function readPausedSince(db: Queryable): Promise<string | null> {
  const [row] = await db.query(readPause);
  return row?.pausedAt ?? null;
}
