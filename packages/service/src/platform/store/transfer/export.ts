import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import copyStreams from 'pg-copy-streams';
import type { BlobStore, ListedBlob } from '../blobs/blobs.ts';
import { markerKey } from '../blobs/marker.ts';
import type { Database } from '../database/database.ts';
import { readApplied } from '../migrations/migrate.ts';
import {
  blobsAtOnce,
  formatName,
  formatVersion,
  makeSectionHeads,
  readSequences,
  readTables,
  type Section,
  sectionBody,
  smallBlobBytes,
} from './export-format.ts';
import { loadInOrder } from './in-order.ts';
import { beginExport, endExport } from './running-exports.ts';

export interface ExportOptions {
  readonly db: Database;
  readonly blobs: BlobStore;
  /** A stream, which the export ends, or the path of a file. The file gets this path only when it is complete, and only its owner can read it. */
  readonly to: Writable | string;
}

export interface TransferResult {
  readonly tables: number;
  readonly rows: number;
  readonly blobs: number;
}

/**
 * Writes all tables and blobs to one file (`export-format.ts`). The service may run meanwhile. One REPEATABLE READ transaction reads
 * the tables, so all rows are of one moment. Then the blobs follow. The service deletes no blob during an export
 * (`running-exports.ts`).
 */
export async function exportDatabase({ db, blobs, to }: ExportOptions): Promise<TransferResult> {
  const result = { tables: 0, rows: 0, blobs: 0 };
  if (typeof to !== 'string') {
    await pipeline(exportChunks(db, blobs, result), to);
    return result;
  }
  const temporary = `${to}.${randomBytes(4).toString('hex')}.part`;
  try {
    await pipeline(
      exportChunks(db, blobs, result),
      createWriteStream(temporary, { flags: 'wx', mode: 0o600, flush: true }),
    );
    await rename(temporary, to);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return result;
}

interface Counts {
  tables: number;
  rows: number;
  blobs: number;
}

async function* exportChunks(db: Database, blobs: BlobStore, result: Counts): AsyncGenerator<Uint8Array> {
  const sectionHead = makeSectionHeads();
  // `onOwnConnection` closes the connection when its callback ends. A generator cannot yield from inside of a callback, so the callback
  // waits for this promise until the export has ended.
  const release = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<pg.Client>();
  const transaction = db.onOwnConnection(async (client) => {
    opened.resolve(client);
    await release.promise;
  });
  transaction.catch(opened.reject);
  try {
    const client = await opened.promise;
    await beginExport(client);
    await beginSnapshot(client);
    yield* databaseSections(client, sectionHead, result);
    await client.query('COMMIT');
    for await (const { key, bytes } of loadInOrder(blobs.list(), blobsAtOnce, (each) => readSmall(blobs, each))) {
      const body = bytes ?? (await blobs.get(key))?.stream;
      if (key === markerKey || body === undefined) continue;
      yield sectionHead({ blob: key });
      yield* sectionBody(body);
      result.blobs += 1;
    }
    await endExport(client);
  } finally {
    release.resolve();
    await transaction.catch(() => undefined);
  }
  yield sectionHead({ end: true, tables: result.tables, blobs: result.blobs });
}

/** Reads the bytes of a small blob. A large blob is read when it has its turn, so that it is never in memory as a whole. */
async function readSmall(blobs: BlobStore, { key, sizeBytes }: ListedBlob) {
  if (sizeBytes > smallBlobBytes) return { key };
  const blob = await blobs.get(key);
  return { key, bytes: blob && [await buffer(blob.stream)] };
}

/**
 * Begins a transaction in which all tables show the rows of one moment, the snapshot. The transaction locks the tables, so no
 * migration can rewrite a table meanwhile: a table that is rewritten after the snapshot looks empty in it ("Caveats" in PostgreSQL's
 * chapter on concurrency). LOCK itself takes no snapshot; the first statement after LOCK takes it.
 */
async function beginSnapshot(client: pg.Client): Promise<void> {
  const tables = await readTables(client);
  const names = tables.map(({ name }) => pg.escapeIdentifier(name)).join(', ');
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET bytea_output = 'hex'");
  if (names !== '') await client.query(`LOCK TABLE ${names} IN ACCESS SHARE MODE`);
}

async function* databaseSections(
  client: pg.Client,
  sectionHead: (section: Section) => Buffer,
  result: Counts,
): AsyncGenerator<Uint8Array> {
  const migrations = await readApplied(client);
  yield sectionHead({ format: formatName, version: formatVersion, createdAt: new Date().toISOString(), migrations });
  for (const { name, columns } of await readTables(client)) {
    const columnList = columns.map((column) => pg.escapeIdentifier(column)).join(', ');
    // COPY (SELECT …) can also read tables that COPY table refuses, such as a table with row security.
    const rows = client.query(
      copyStreams.to(`COPY (SELECT ${columnList} FROM ${pg.escapeIdentifier(name)}) TO STDOUT`),
    );
    yield sectionHead({ table: name, columns });
    yield* sectionBody(rows);
    result.tables += 1;
    result.rows += rows.rowCount;
  }
  for (const name of await readSequences(client)) {
    const { rows } = await client.query<{ last: string; called: boolean }>(
      `SELECT last_value::text AS last, is_called AS called FROM ${pg.escapeIdentifier(name)}`,
    );
    for (const { last, called } of rows) yield sectionHead({ sequence: name, lastValue: last, isCalled: called });
  }
}
