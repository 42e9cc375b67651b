/** Reads the sections of an export in their order, and checks that none is missing. */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { markerKey } from '../blobs/marker.ts';
import type { AppliedMigration } from '../migrations/migrate.ts';
import type { TransferResult } from './export.ts';
import { type ExportReader, formatName, formatVersion, readExport, type Section } from './export-format.ts';

/** Reads the first section: the migrations of the tables. Throws if the section does not begin a backup that this version can read. */
export async function readHeader(
  reader: ExportReader,
): Promise<{ readonly migrations: readonly AppliedMigration[]; readonly createdAt: string }> {
  const head = await reader.head();
  if (!('format' in head) || head.format !== formatName) throw new Error('This is not a Runyard backup');
  if (head.version !== formatVersion)
    throw new Error(`The backup has format ${head.version}; this Runyard reads ${formatVersion}`);
  return head;
}

interface SectionVisitor {
  /** Names that must each have a section; undefined: all names fit. */
  readonly tables?: Set<string>;
  readonly sequences?: Set<string>;
  /** Reads the body of a table to its end, and returns the number of rows. */
  table(head: Extract<Section, { table: string }>): Promise<number>;
  sequence(head: Extract<Section, { sequence: string }>): Promise<void>;
  /** Reads the body of a blob to its end. */
  blob(head: Extract<Section, { blob: string }>): Promise<void>;
}

/** Calls the visitor for each section after the first. Throws if a section is missing, twice there or damaged. */
export async function visitSections(reader: ExportReader, visitor: SectionVisitor): Promise<TransferResult> {
  const result = { tables: 0, rows: 0, blobs: 0 };
  for (;;) {
    const head = await reader.head();
    if ('table' in head) {
      if (visitor.tables?.delete(head.table) === false)
        throw new Error(`The backup's table ${head.table} does not fit`);
      result.rows += await visitor.table(head);
      result.tables += 1;
    } else if ('sequence' in head) {
      if (visitor.sequences?.delete(head.sequence) === false)
        throw new Error(`The backup's sequence ${head.sequence} does not fit`);
      await visitor.sequence(head);
    } else if ('blob' in head) {
      // The marker belongs to the blob store and not to the copied data. An export never contains it.
      if (head.blob === markerKey) throw new Error(`The backup has a blob ${markerKey}, which no Runyard has written`);
      await visitor.blob(head);
      result.blobs += 1;
    } else if ('end' in head) {
      const missing = (visitor.tables?.size ?? 0) + (visitor.sequences?.size ?? 0);
      if (missing > 0 || head.tables !== result.tables || head.blobs !== result.blobs)
        throw new Error('The backup is not complete');
      return result;
    } else {
      throw new Error('The backup has a second first section');
    }
  }
}

/** The counts and the origin of a verified backup. */
export interface VerifiedBackup extends TransferResult {
  /** RFC 3339. */
  readonly createdAt: string;
  /** Name of the newest migration of its tables. */
  readonly migration: string;
}

/** Reads a whole backup and compares each checksum. Throws, with a message for a person, if it is cut off, damaged or not a backup. */
export async function verifyExport(from: Readable | string): Promise<VerifiedBackup> {
  const source = typeof from === 'string' ? createReadStream(from) : from;
  const reader = readExport(source);
  const skip = async (): Promise<void> => {
    for await (const _ of reader.body());
  };
  try {
    const { migrations, createdAt } = await readHeader(reader);
    const result = await visitSections(reader, {
      table: async () => {
        let rows = 0;
        // In PostgreSQL's text format of COPY, only the end of a row is a line feed.
        for await (const part of reader.body()) for (const byte of part) if (byte === 10) rows += 1;
        return rows;
      },
      sequence: async () => {},
      blob: skip,
    });
    await reader.end();
    return { ...result, createdAt, migration: migrations.at(-1)?.name ?? 'none' };
  } finally {
    source.destroy();
  }
}
