import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import copyStreams from 'pg-copy-streams';
import type { BlobStore } from '../blobs/blobs.ts';
import type { Database } from '../database/database.ts';
import {
  type AppliedMigration,
  baselineOf,
  commitsBefore,
  describeCommits,
  findReplaced,
  type Migration,
  migrateDatabase,
  migrationsFolder,
  readAppliedIfAny,
  readMigrations,
} from '../migrations/migrate.ts';
import type { TransferResult } from './export.ts';
import {
  blobsAtOnce,
  type ExportReader,
  type ForeignKey,
  readExport,
  readForeignKeys,
  readSequences,
  readTables,
  smallBlobBytes,
  type TableObject,
} from './export-format.ts';
import { readHeader, visitSections } from './read-sections.ts';

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
    await prepareTables(db, withBaseline((await readHeader(reader)).migrations, known), { known, folder: migrations });
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
        `The backup is too old for this Runyard: it was made at migration ${exported.at(-1)?.name}. Restore it with the Runyard of commit ${commitsBefore(exported)[0]}. Then start ${describeCommits(exported)} on the same database, and then this one.`,
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
  const known = new Map(tables.map((table) => [table.name, table]));
  const storing = storeBlobs(blobs, added);
  try {
    const result = await visitSections(reader, {
      tables: new Set(known.keys()),
      sequences: new Set(await readSequences(client)),
      table: async ({ table: name, columns }) => {
        if (!sameColumns(known.get(name)?.columns ?? [], columns))
          throw new Error(`The backup's table ${name} does not fit`);
        return await copyIn(client, reader, { name, columns });
      },
      sequence: async ({ sequence, lastValue, isCalled }) => {
        const values = [pg.escapeIdentifier(sequence), lastValue, isCalled];
        await client.query('SELECT setval($1::regclass, $2::bigint, $3)', values);
      },
      blob: async ({ blob: key }) => await storing.put(key, reader.body()),
    });
    await reader.end();
    await storing.done();
    return result;
  } finally {
    // Wait also after an error, because the caller then deletes the new blobs.
    await storing.settled();
  }
}

/** Stores blobs, small ones at the same time, and adds the keys of new blobs to `added`. */
function storeBlobs(blobs: BlobStore, added: string[]) {
  const storing = new Set<Promise<void>>();
  let fault: { readonly error: unknown } | undefined;
  const store = async (key: string, body: AsyncIterable<Uint8Array>): Promise<void> => {
    // After an error, remove only blobs that this import has added. A blob that existed before may belong to another database.
    if ((await blobs.stat(key)) === undefined) added.push(key);
    await blobs.put(key, body, { maxBytes: Number.MAX_SAFE_INTEGER });
  };
  const done = async (most: number): Promise<void> => {
    while (storing.size > most) await Promise.race(storing);
    if (fault !== undefined) throw fault.error;
  };
  return {
    put: async (key: string, body: AsyncGenerator<Uint8Array>): Promise<void> => {
      const { small, rest } = await readBeginning(body);
      if (!small) return await store(key, rest);
      await done(blobsAtOnce - 1);
      const work = store(key, rest)
        .catch((error: unknown) => {
          fault ??= { error };
        })
        .finally(() => storing.delete(work));
      storing.add(work);
    },
    done: async () => await done(0),
    settled: async () => void (await Promise.allSettled(storing)),
  };
}

/** Reads a body up to the size of a small blob. `rest` yields all its bytes; if it is `small`, they are in memory, and their checksum fits. */
async function readBeginning(
  body: AsyncGenerator<Uint8Array>,
): Promise<{ readonly small: boolean; readonly rest: AsyncIterable<Uint8Array> }> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  let small = false;
  while (bytes <= smallBlobBytes && !small) {
    const next = await body.next();
    if (next.done) small = true;
    else {
      parts.push(next.value);
      bytes += next.value.byteLength;
    }
  }
  return {
    small,
    rest: (async function* () {
      yield* parts;
      yield* body;
    })(),
  };
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
