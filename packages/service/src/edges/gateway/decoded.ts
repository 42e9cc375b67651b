import type { IncomingMessage } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';

/** The bytes of an answer, decompressed if a provider compresses against our request; undefined: an unknown coding. */
export function decoded(response: IncomingMessage): { body: Readable; changed: boolean } | undefined {
  const coding = response.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  const through = (decoder: Readable & NodeJS.WritableStream): { body: Readable; changed: boolean } => {
    // Errors of either side end up at `decoder`, whose reader deals with them.
    pipeline(response, decoder, () => {});
    return { body: decoder, changed: true };
  };
  switch (coding) {
    case 'identity':
    case '':
      return { body: response, changed: false };
    case 'gzip':
    case 'x-gzip':
      return through(createGunzip());
    case 'deflate':
      return through(createInflate());
    case 'br':
      return through(createBrotliDecompress());
    case 'zstd':
      return through(createZstdDecompress());
    default:
      return undefined;
  }
}
