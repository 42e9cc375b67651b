import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import copyStreams from 'pg-copy-streams';
import type { BlobStore } from '../blobs/blobs.ts';
import { markerKey } from '../blobs/marker.ts';
import type { Database } from '../database/database.ts';
import {
  type AppliedMigration,
  baselineOf,
  findReplaced,
  lastCommitBeforeBaseline,
  type Migration,
  migrateDatabase,
  migrationsFolder,
  readAppliedIfAny,
  readMigrations,
} from '../migrations/migrate.ts';
import type { TransferResult } from './export.ts';
import {
  type ExportReader,
  type ForeignKey,
  formatName,
  formatVersion,
  readExport,
  readForeignKeys,
  readSequences,
  readTables,
  type TableObject,
} from './export-format.ts';

export interface ImportOptions {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly from: Readable | string;
  /** Called after the tables were filled, in the same transaction. May change the rows. */
  readonly whenFilled?: (client: pg.Client) => Promise<void>;
  /** Folder of the migrations. Default: the migrations of this version of Runyard. */
  readonly migrations?: string;
}

/**
 * Fills an empty database from an export. If the file has an error, no row and no new blob stays. The function migrates the database
 * to the version of the export, fills the tables, and then migrates the database to the present version. If this last step fails, the
 * next start of the service repeats it. Throws if a table has rows, if the database is newer than the export, or if the file is
 * damaged, incomplete, or from a newer Runyard.
 */
export async function importDatabase({
  db,
  blobs,
  from,
  whenFilled = async () => {},
  migrations = migrationsFolder,
}: ImportOptions): Promise<TransferResult> {
  const source = typeof from === 'string' ? createReadStream(from) : from;
  const reader = readExport(source);
  try {
    const known = await readMigrations(migrations);
    await prepareTables(db, withBaseline(await readHeader(reader), known), { known, folder: migrations });
    const result = await db.onOwnConnection((client) => fill(client, reader, blobs, whenFilled));
    await migrateDatabase(db, { folder: migrations }).catch((error: Error) => {
      throw new Error(
        `Everything was restored, but not migrated to this version (${error.message}). Do not restore again: the next start of Runyard tries the migration again.`,
        { cause: error },
      );
    });
    await db.onOwnConnection((client) => client.query('ANALYZE'));
    return result;
  } finally {
    source.destroy();
  }
}

async function readHeader(reader: ExportReader): Promise<readonly AppliedMigration[]> {
  const head = await reader.head();
  if (!('format' in head) || head.format !== formatName) throw new Error('This is not a Runyard backup');
  if (head.version !== formatVersion)
    throw new Error(`The backup has format ${head.version}; this Runyard reads ${formatVersion}`);
  return head.migrations;
}

/**
 * Returns the migrations that a database must have for this export. If the export has all migrations that the baseline replaced,
 * returns the baseline, because the tables are the same.
 */
function withBaseline(exported: readonly AppliedMigration[], known: readonly Migration[]): readonly AppliedMigration[] {
  switch (findReplaced(exported)) {
    case 'none':
      return exported;
    case 'some':
      throw new Error(
        `The backup is too old for this Runyard: it was made at migration ${exported.at(-1)?.name}. Restore it with the Runyard of commit ${lastCommitBeforeBaseline}, then start this Runyard on the same database.`,
      );
    case 'all':
      return baselineOf(known);
  }
}

/** Migrates a database without rows until it has the same migrations as the export. Throws, and changes nothing, if that is impossible. */
async function prepareTables(
  db: Database,
  wanted: readonly AppliedMigration[],
  { known, folder }: { readonly known: readonly Migration[]; readonly folder: string },
): Promise<void> {
  const last = wanted.at(-1);
  if (last === undefined) throw new Error('The backup names no migration');
  const made = `The backup was made at migration ${last.name}`;
  if (!isBeginning(wanted, known))
    throw new Error(
      `${made}, which this Runyard does not have. Restore the file with the Runyard that wrote it, then start this Runyard on that database: it migrates the database, or reports why it cannot.`,
    );
  await db.onOwnConnection(async (client) => {
    const applied = await readAppliedIfAny(client);
    if (!isBeginning(applied, wanted))
      throw new Error(
        `${made}, the database is at ${applied.at(-1)?.name}. Restore into a new database without tables.`,
      );
    const tables = await readTables(client);
    const [foreign] = applied.length === 0 ? tables : [];
    if (foreign !== undefined)
      throw new Error(
        `The database has tables of another program, such as ${foreign.name}. Restore into a new database.`,
      );
    for (const { name } of tables) await requireEmpty(client, name);
  });
  await migrateDatabase(db, { folder, upTo: last.version });
}

function isBeginning(some: readonly AppliedMigration[], all: readonly AppliedMigration[]): boolean {
  return some.every(({ version, checksum }, index) => {
    const other = all[index];
    return other?.version === version && other.checksum === checksum;
  });
}

async function fill(
  client: pg.Client,
  reader: ExportReader,
  blobs: BlobStore,
  whenFilled: (client: pg.Client) => Promise<void>,
): Promise<TransferResult> {
  const added: string[] = [];
  await client.query('BEGIN');
  try {
    const tables = await readTables(client);
    await lockEmpty(client, tables);
    const foreignKeys = await suspendRules(client, tables);
    const result = await readSections(client, reader, blobs, tables, added);
    await whenFilled(client);
    await resumeRules(client, tables, foreignKeys);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    for (const key of added) await blobs.delete(key).catch(() => undefined);
    throw error;
  }
}

/** Locks all tables, and throws if one of them has rows. Because of the locks, no service can write to the database during the import. */
async function lockEmpty(client: pg.Client, tables: readonly TableObject[]): Promise<void> {
  for (const { name } of tables) {
    await client.query(`LOCK TABLE ${pg.escapeIdentifier(name)} IN ACCESS EXCLUSIVE MODE`);
    await requireEmpty(client, name);
  }
}

async function requireEmpty(client: pg.Client, table: string): Promise<void> {
  const { rowCount } = await client.query(`SELECT FROM ${pg.escapeIdentifier(table)} LIMIT 1`);
  if (rowCount !== 0)
    throw new Error(`The database is not empty: table ${table} has rows. Restore into a new database or data folder.`);
}

/**
 * Drops the foreign keys and disables the triggers. Some tables refer to each other in both directions, so there is no order in which
 * the tables could be filled with foreign keys. `resumeRules` creates the foreign keys again in the same transaction.
 */
async function suspendRules(client: pg.Client, tables: readonly TableObject[]): Promise<ForeignKey[]> {
  const foreignKeys = await readForeignKeys(client);
  for (const { table, name } of foreignKeys) {
    await client.query(`ALTER TABLE ${pg.escapeIdentifier(table)} DROP CONSTRAINT ${pg.escapeIdentifier(name)}`);
  }
  for (const { name } of tables) await client.query(`ALTER TABLE ${pg.escapeIdentifier(name)} DISABLE TRIGGER USER`);
  return foreignKeys;
}

async function resumeRules(
  client: pg.Client,
  tables: readonly TableObject[],
  foreignKeys: readonly ForeignKey[],
): Promise<void> {
  for (const { name } of tables) await client.query(`ALTER TABLE ${pg.escapeIdentifier(name)} ENABLE TRIGGER USER`);
  for (const { table, name, definition } of foreignKeys) {
    await client.query(
      `ALTER TABLE ${pg.escapeIdentifier(table)} ADD CONSTRAINT ${pg.escapeIdentifier(name)} ${definition}`,
    );
  }
}

async function readSections(
  client: pg.Client,
  reader: ExportReader,
  blobs: BlobStore,
  tables: readonly TableObject[],
  added: string[],
): Promise<TransferResult> {
  const waiting = new Map(tables.map((table) => [table.name, table]));
  const sequences = new Set(await readSequences(client));
  let rows = 0;
  let blobCount = 0;
  for (;;) {
    const head = await reader.head();
    if ('table' in head) {
      const table = waiting.get(head.table);
      if (table === undefined || !sameColumns(table.columns, head.columns))
        throw new Error(`The backup's table ${head.table} does not fit`);
      waiting.delete(head.table);
      rows += await copyIn(client, reader, { name: table.name, columns: head.columns });
    } else if ('sequence' in head) {
      if (!sequences.delete(head.sequence)) throw new Error(`The backup's sequence ${head.sequence} does not fit`);
      await client.query('SELECT setval($1::regclass, $2::bigint, $3)', [
        pg.escapeIdentifier(head.sequence),
        head.lastValue,
        head.isCalled,
      ]);
    } else if ('blob' in head) {
      blobCount += 1;
      // The marker belongs to the blob store and not to the copied data. An export never contains it.
      if (head.blob === markerKey) throw new Error(`The backup has a blob ${markerKey}, which no Runyard has written`);
      // After an error, remove only blobs that this import has added. A blob that existed before may belong to another database.
      if ((await blobs.stat(head.blob)) === undefined) added.push(head.blob);
      await blobs.put(head.blob, reader.body(), { maxBytes: Number.MAX_SAFE_INTEGER });
    } else if ('end' in head) {
      const done = tables.length - waiting.size;
      if (waiting.size > 0 || sequences.size > 0 || head.tables !== done || head.blobs !== blobCount)
        throw new Error('The backup is not complete');
      return { tables: done, rows, blobs: blobCount };
    } else {
      throw new Error('The backup has two beginnings');
    }
  }
}

async function copyIn(client: pg.Client, reader: ExportReader, { name, columns }: TableObject): Promise<number> {
  const columnList = columns.map((column) => pg.escapeIdentifier(column)).join(', ');
  const copy = client.query(copyStreams.from(`COPY ${pg.escapeIdentifier(name)} (${columnList}) FROM STDIN`));
  await pipeline(reader.body(), copy);
  return copy.rowCount;
}

function sameColumns(ours: readonly string[], theirs: readonly string[]): boolean {
  return ours.length === theirs.length && ours.every((column) => theirs.includes(column));
}
