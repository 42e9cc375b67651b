/**
 * Combines several byte streams into one. Each stream is split into frames. A frame is a length (4 bytes, big-endian) and then this
 * number of bytes. A frame of length 0 ends the stream. Workspace and home are two tar streams, because their paths can differ in the
 * next sandbox.
 */

/** Maximum size of a frame, because a damaged archive could announce a frame of gigabytes. */
const maxFrameBytes = 16 * 1024 * 1024;

/** Returns the framed form of the streams. */
export async function* framed(streams: readonly AsyncIterable<Buffer>[]): AsyncGenerator<Buffer> {
  for (const stream of streams) {
    for await (const chunk of stream) {
      for (let start = 0; start < chunk.length; start += maxFrameBytes) {
        const part = chunk.subarray(start, start + maxFrameBytes);
        yield lengthOf(part.length);
        yield part;
      }
    }
    yield lengthOf(0);
  }
}

function lengthOf(bytes: number): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes);
  return length;
}

/** Reads framed streams. `next()` returns the chunks of the next stream. Read this stream to its end before the next call. */
export function unframed(source: AsyncIterable<Buffer>): { next(): AsyncGenerator<Buffer>; end(): Promise<void> } {
  const chunks = source[Symbol.asyncIterator]();
  let buffered: Buffer = Buffer.alloc(0);

  /** Returns the next bytes of the source, at least 1 and at most `most`; null at the end of the source. */
  async function some(most: number): Promise<Buffer | null> {
    while (buffered.length === 0) {
      const { done, value } = await chunks.next();
      if (done) return null;
      buffered = value;
    }
    const part = buffered.subarray(0, most);
    buffered = buffered.subarray(part.length);
    return part;
  }

  async function exactly(bytes: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let missing = bytes; missing > 0; ) {
      const part = await some(missing);
      if (part === null) throw new Error('the archive ends too early');
      parts.push(part);
      missing -= part.length;
    }
    return Buffer.concat(parts);
  }

  return {
    async *next() {
      for (;;) {
        let left = (await exactly(4)).readUInt32BE();
        if (left === 0) return;
        if (left > maxFrameBytes) throw new Error('the archive is damaged');
        while (left > 0) {
          const part = await some(left);
          if (part === null) throw new Error('the archive ends too early');
          left -= part.length;
          yield part;
        }
      }
    },
    async end() {
      if ((await some(1)) !== null) throw new Error('the archive continues after its end');
    },
  };
}
