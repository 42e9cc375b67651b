/**
 * The export file, written and read as a stream. It is plain (compress it as you like) and made of sections:
 *
 *     {"format":"runyard-export","version":1,"createdAt":"…","migrations":[{"version":1,"name":"0001_access","checksum":"…"}]}
 *     {"table":"runs","columns":["id",…]}         then a body: rows in PostgreSQL's text format of COPY
 *     {"sequence":"teams_number_seq","lastValue":"7","isCalled":true}
 *     {"blob":"artifacts/0190…"}                  then a body: the bytes
 *     {"end":true,"tables":18,"blobs":4}
 *
 * Each head is a line of JSON. A body is a row of chunks, each a length (4 bytes, big-endian) and as many bytes; length 0
 * ends it. Then a line of JSON follows: {"bytes":…,"sha256":"…"}. So a file that was cut off or changed is always seen.
 * The file holds everything, secrets too: keep it like a password.
 */
import { createHash } from 'node:crypto';
import type { AppliedMigration } from '../migrations/migrate.ts';

export const formatName = 'runyard-export';
export const formatVersion = 1;

export type Section =
  | {
      readonly format: string;
      readonly version: number;
      readonly createdAt: string;
      readonly migrations: readonly AppliedMigration[];
    }
  | { readonly table: string; readonly columns: readonly string[] }
  | { readonly sequence: string; readonly lastValue: string; readonly isCalled: boolean }
  | { readonly blob: string }
  | { readonly end: true; readonly tables: number; readonly blobs: number };

const maxChunkBytes = 1024 * 1024;
const maxLineBytes = 1024 * 1024;

export function sectionHead(section: Section): Buffer {
  return Buffer.from(`${JSON.stringify(section)}\n`);
}

/** The chunks, and the line that ends a body. */
export async function* sectionBody(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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
  /** Returns the body that follows; it must be read to its end before the next head. Throws if it is damaged. */
  body(): AsyncGenerator<Buffer>;
}

export function readExport(source: AsyncIterable<Uint8Array>): ExportReader {
  const parts = source[Symbol.asyncIterator]();
  let rest = Buffer.alloc(0);
  const more = async (): Promise<void> => {
    const next = await parts.next();
    if (next.done) throw new Error('The export file ends in the middle: it was cut off');
    rest = rest.length === 0 ? Buffer.from(next.value) : Buffer.concat([rest, next.value]);
  };
  const take = async (length: number): Promise<Buffer> => {
    while (rest.length < length) await more();
    const taken = rest.subarray(0, length);
    rest = rest.subarray(length);
    return taken;
  };
  const line = async (): Promise<unknown> => {
    for (;;) {
      const end = rest.indexOf(10);
      if (end > maxLineBytes || (end < 0 && rest.length > maxLineBytes)) throw damaged();
      if (end < 0) {
        await more();
        continue;
      }
      const text = (await take(end + 1)).toString();
      try {
        return JSON.parse(text);
      } catch {
        throw damaged();
      }
    }
  };
  return {
    head: async () => {
      const head = await line();
      if (typeof head !== 'object' || head === null) throw damaged();
      return head as Section;
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
      const told = (await line()) as { bytes?: unknown; sha256?: unknown };
      if (told.bytes !== bytes || told.sha256 !== hash.digest('hex')) throw damaged();
    },
  };
}

function damaged(): Error {
  return new Error('This is not a Runyard export, or it is damaged');
}
