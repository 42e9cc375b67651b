import type { Readable } from 'node:stream';
import { type ReadHead, readPushHead } from '../../../runs/repositories/pushes/read-commands.ts';

/** A body whose first bytes can be read before the body as a whole. */
export interface Peekable {
  /** Returns the first bytes of the body: at least `bytes` of them, or fewer if the body is shorter. */
  read(bytes: number): Promise<Buffer>;
  /** Returns the whole body, including the bytes that `read` returned. Call it only once, as the last call. */
  all(): AsyncIterable<Buffer>;
  /** Reads up to `bytes` more bytes and drops them. If the body is longer, destroys the body. */
  discard(bytes: number): Promise<void>;
}

/** Wraps a body. No other code may read the body. */
export function peekable(body: Readable): Peekable {
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let parts: Buffer[] = [];
  let size = 0;

  async function* everything(): AsyncGenerator<Buffer> {
    yield* parts;
    parts = [];
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  }

  return {
    read: async (bytes) => {
      while (size < bytes) {
        const next = await chunks.next();
        if (next.done) break;
        parts.push(next.value);
        size += next.value.length;
      }
      const whole = Buffer.concat(parts);
      parts = [whole];
      return whole;
    },
    all: everything,
    discard: async (bytes) => {
      parts = [];
      let remainingBytes = bytes;
      try {
        for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
          remainingBytes -= next.value.length;
          if (remainingBytes < 0) break;
        }
      } catch {
        // The client disconnected, so no answer is needed.
      }
      if (remainingBytes < 0) body.destroy();
    },
  };
}

/** Largest size of the commands of a push with the largest number of branches, and of push options. */
const maxHeadBytes = 256 * 1024;

/**
 * Reads the commands at the beginning of a push. Each further call of `read` waits for twice as many bytes. This limits the work: a sandbox
 * that sends single bytes would otherwise make the service parse the beginning again for each byte. The commands of a push are followed by
 * a pack or by the end of the body.
 */
export async function readHead(peeked: Pick<Peekable, 'read'>): Promise<ReadHead> {
  let bytes = await peeked.read(1);
  let read = readPushHead(bytes);
  while (read.kind === 'more' && bytes.length < maxHeadBytes) {
    const more = await peeked.read(bytes.length * 2);
    if (more.length === bytes.length) break;
    bytes = more;
    read = readPushHead(bytes);
  }
  return read;
}
