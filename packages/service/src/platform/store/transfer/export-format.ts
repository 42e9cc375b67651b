/**
 * Writes and reads the export file as a stream. The file is not compressed and consists of sections:
 *
 *     {"format":"runyard-export","version":1,"createdAt":"…","migrations":[{"version":1,"name":"0001_access","checksum":"…"}]}
 *     {"table":"runs","columns":["id",…]}         then a body: rows in PostgreSQL's text format of COPY
 *     {"sequence":"teams_number_seq","lastValue":"7","isCalled":true}
 *     {"blob":"artifacts/0190…"}                  then a body: the bytes
 *     {"end":true,"tables":18,"blobs":4,"heads":"…"}
 *
 * Each head is a line of JSON. A body is a sequence of chunks. Each chunk has a length (4 bytes, big-endian) and then this number of bytes. Length
 * 0 ends the body, and a line of JSON follows: {"bytes":…,"sha256":"…"}. `heads` in the last head is the SHA-256 of all earlier heads;
 * older versions of Runyard did not write it. With these checksums, the import detects a file that is incomplete or was changed.
 * The file contains all data of the installation, also secrets, so protect the file like a password.
 */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import { z } from 'zod';

export const formatName = 'runyard-export';
export const formatVersion = 1;

const sectionSchema = z.union([
  z.object({
    format: z.literal(formatName),
    version: z.number(),
    createdAt: z.string(),
    migrations: z.array(z.object({ version: z.int(), name: z.string(), checksum: z.string() })),
  }),
  z.object({ table: z.string(), columns: z.array(z.string()).readonly() }),
  z.object({ sequence: z.string(), lastValue: z.string().regex(/^-?\d{1,19}$/), isCalled: z.boolean() }),
  z.object({ blob: z.string() }),
  z.object({ end: z.literal(true), tables: z.int(), blobs: z.int(), heads: z.string().optional() }),
]);

export type Section = z.infer<typeof sectionSchema>;

const bodyEndSchema = z.object({ bytes: z.int(), sha256: z.string() });

/** Number of small blobs that an export reads, or an import writes, at the same time. A bucket answers each request only after some time. */
export const blobsAtOnce = 16;
/** Blobs up to this size are read into memory. */
export const smallBlobBytes = 1024 * 1024;

const maxChunkBytes = 1024 * 1024;
const maxLineBytes = 1024 * 1024;

/**
 * Returns a function that makes the heads of one file. Call it for each section, in the order of the file. The function adds the
 * checksum `heads` to the last head.
 */
export function makeSectionHeads(): (section: Section) => Buffer {
  const heads = createHash('sha256');
  return (section) => {
    const whole = 'end' in section ? { ...section, heads: heads.digest('hex') } : section;
    const line = Buffer.from(`${JSON.stringify(whole)}\n`);
    if (!('end' in section)) heads.update(line);
    return line;
  };
}

/** Returns the bytes of a body: its chunks and the line of JSON after them. */
export async function* sectionBody(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const part of source) {
    for (let at = 0; at < part.byteLength; at += maxChunkBytes) {
      const chunk = part.subarray(at, at + maxChunkBytes);
      hash.update(chunk);
      bytes += chunk.byteLength;
      yield lengthPrefix(chunk.byteLength);
      yield chunk;
    }
  }
  yield lengthPrefix(0);
  yield Buffer.from(`${JSON.stringify({ bytes, sha256: hash.digest('hex') })}\n`);
}

function lengthPrefix(length: number): Buffer {
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(length);
  return prefix;
}

export interface ExportReader {
  /** Returns the next head. Throws at the end of the file. */
  head(): Promise<Section>;
  /** Returns the body of the section. Read the body to its end before the next call of `head`. Throws if the body is damaged. */
  body(): AsyncGenerator<Buffer>;
  /** Throws if the file has bytes after its last head. */
  end(): Promise<void>;
}

export function readExport(source: AsyncIterable<Uint8Array>): ExportReader {
  const parts = source[Symbol.asyncIterator]();
  let rest = Buffer.alloc(0);
  const more = async (): Promise<void> => {
    const next = await parts.next();
    if (next.done) throw new Error('The backup ends in the middle: it was cut off');
    rest = rest.length === 0 ? Buffer.from(next.value) : Buffer.concat([rest, next.value]);
  };
  const take = async (length: number): Promise<Buffer> => {
    while (rest.length < length) await more();
    const taken = rest.subarray(0, length);
    rest = rest.subarray(length);
    return taken;
  };
  const heads = createHash('sha256');
  const line = async (): Promise<Buffer> => {
    for (;;) {
      const end = rest.indexOf(10);
      if (end > maxLineBytes || (end < 0 && rest.length > maxLineBytes)) throw damaged();
      if (end < 0) {
        await more();
        continue;
      }
      return await take(end + 1);
    }
  };
  return {
    head: async () => {
      const bytes = await line();
      const head = parsed(sectionSchema, bytes);
      if (!('end' in head)) heads.update(bytes);
      else if (head.heads !== undefined && head.heads !== heads.digest('hex')) throw damaged();
      return head;
    },
    body: async function* () {
      const hash = createHash('sha256');
      let bytes = 0;
      for (;;) {
        const length = (await take(4)).readUInt32BE();
        if (length === 0) break;
        if (length > maxChunkBytes) throw damaged();
        const chunk = await take(length);
        hash.update(chunk);
        bytes += length;
        yield chunk;
      }
      const bodyEnd = parsed(bodyEndSchema, await line());
      if (bodyEnd.bytes !== bytes || bodyEnd.sha256 !== hash.digest('hex')) throw damaged();
    },
    end: async () => {
      while (rest.length === 0) {
        const next = await parts.next();
        if (next.done) return;
        rest = Buffer.from(next.value);
      }
      throw damaged();
    },
  };
}

/** Parses a line of JSON. Throws if the line does not match the schema. */
function parsed<T>(schema: z.ZodType<T>, line: Buffer): T {
  try {
    return schema.parse(JSON.parse(line.toString()));
  } catch {
    throw damaged();
  }
}

function damaged(): Error {
  return new Error('This is not a Runyard backup, or it is damaged');
}

/** A table of the current schema that an export copies and an import fills. */
export interface TableObject {
  readonly name: string;
  /** Columns of the table except generated columns, which cannot be written. */
  readonly columns: readonly string[];
}

export async function readTables(client: pg.ClientBase): Promise<TableObject[]> {
  const { rows } = await client.query<{ name: string; columns: string[] }>(`
    SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname <> 'schema_migrations'
    GROUP BY c.relname ORDER BY c.relname COLLATE "C"`);
  return rows;
}

export async function readSequences(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    SELECT relname AS name FROM pg_class
    WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace ORDER BY relname COLLATE "C"`);
  return rows.map(({ name }) => name);
}

export interface ForeignKey {
  readonly table: string;
  readonly name: string;
  /** The text that follows the name in ALTER TABLE … ADD CONSTRAINT. */
  readonly definition: string;
}

export async function readForeignKeys(client: pg.ClientBase): Promise<ForeignKey[]> {
  const { rows } = await client.query<ForeignKey>(`
    SELECT c.relname AS table, k.conname AS name, pg_get_constraintdef(k.oid) AS definition
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE k.contype = 'f' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, k.conname`);
  return rows;
}
