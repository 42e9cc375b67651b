import type { Readable } from 'node:stream';

/** A body whose first bytes can be read before the body as a whole. */
export interface Peekable {
  /** Returns the bytes from the start on: at least `bytes` of them, or fewer if the body ends before. */
  read(bytes: number): Promise<Buffer>;
  /** Returns the whole body, the bytes that were read included. Called once, at last. */
  all(): AsyncIterable<Buffer>;
  /** Reads up to `bytes` more and drops them. If the body has still more, destroys it. */
  discard(bytes: number): Promise<void>;
}

/** Wraps a body. Nothing else may read it. */
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
      let left = bytes;
      try {
        for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
          left -= next.value.length;
          if (left < 0) break;
        }
      } catch {
        // The client disconnected, so no answer is needed.
      }
      if (left < 0) body.destroy();
    },
  };
}
