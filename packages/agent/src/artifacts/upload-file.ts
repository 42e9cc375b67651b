import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { createHash, monotonicMs } from '../builtin-modules.ts';
import { UnreadableBody } from '../service/errors.ts';

/**
 * Returns a stream of the first `size` bytes of an open file. The stream does not close the file, so an upload can be repeated with another
 * stream. `onRead` gets the number of bytes that were read so far.
 */
export function openChunks(file: FileHandle, size: number, onRead?: (bytes: number) => void): Readable {
  return Readable.from(chunksOf(file, size, onRead));
}

async function* chunksOf(file: FileHandle, size: number, onRead?: (bytes: number) => void): AsyncGenerator<Buffer> {
  for (let position = 0; position < size; ) {
    const length = Math.min(64 * 1024, size - position);
    const read = await file.read(Buffer.alloc(length), 0, length, position).catch((error: Error) => {
      throw new UnreadableBody(`the file cannot be read: ${error.message}`);
    });
    if (read.bytesRead === 0) throw new UnreadableBody('the file became shorter while it was uploaded');
    position += read.bytesRead;
    onRead?.(position);
    yield read.buffer.subarray(0, read.bytesRead);
  }
}

const betweenLinesMs = 10_000;

/**
 * Returns a function that gets the number of bytes sent so far, and reports it as a line of text: at most every 10 s, and only if another
 * twentieth of the file was sent. So a person sees that a long upload continues.
 */
export function uploadProgress(
  size: number,
  tell: (line: string) => void,
  now: () => number = monotonicMs,
): (sent: number) => void {
  let toldAt = now();
  let told = 0;
  return (sent) => {
    // An upload that was cut begins again.
    if (sent < told) told = 0;
    if (sent - told < size / 20 || now() - toldAt < betweenLinesMs) return;
    toldAt = now();
    told = sent;
    tell(`sent ${formatBytes(sent)} of ${formatBytes(size)}`);
  };
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
