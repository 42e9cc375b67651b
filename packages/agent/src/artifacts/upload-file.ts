import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createHash } from '../builtin-modules.ts';
import { UnreadableBody } from '../service/errors.ts';

/**
 * Returns a stream of the first `size` bytes of an open file. The stream does not close the file, so an upload can be repeated with another
 * stream.
 */
export function openChunks(file: FileHandle, size: number): Readable {
  return Readable.from(chunksOf(file, size));
}

async function* chunksOf(file: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let position = 0; position < size; ) {
    const length = Math.min(64 * 1024, size - position);
    const read = await file.read(Buffer.alloc(length), 0, length, position).catch((error: Error) => {
      throw new UnreadableBody(`the file cannot be read: ${error.message}`);
    });
    if (read.bytesRead === 0) throw new UnreadableBody('the file became shorter while it was uploaded');
    position += read.bytesRead;
    yield read.buffer.subarray(0, read.bytesRead);
  }
}

/** Returns the SHA-256 of the first `size` bytes of an open file. */
export async function sha256Of(file: FileHandle, size: number): Promise<Buffer> {
  const hash = createHash('sha256');
  for await (const chunk of chunksOf(file, size)) hash.update(chunk);
  return hash.digest();
}

/**
 * Returns the path of a signed URL. The agent sends the upload to this path of the service and not to the URL's host, because a sandbox may
 * reach no host but the service.
 */
export function pathOf(urlOrPath: string): string {
  if (urlOrPath.startsWith('/')) return urlOrPath;
  const url = new URL(urlOrPath);
  return url.pathname + url.search;
}
