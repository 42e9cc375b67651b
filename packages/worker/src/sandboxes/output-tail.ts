import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Number of bytes that are kept from the end of an agent's output. The end may contain a stack trace, which a failure message shows. */
const keptBytes = 64 * 1024;
/**
 * Maximum number of bytes that are read in each period of `windowMs`. Further output is read in the next period, so that an agent that
 * writes very much output costs little processor time.
 */
const bytesPerWindow = 4 * 1024 * 1024;
const windowMs = 250;

export interface OutputTail {
  /** Returns the text that was kept since the previous call, without a character whose end has not arrived. */
  take(): string;
  /** Returns the kept text. Invalid UTF-8 becomes U+FFFD; NUL characters are dropped. */
  text(): string;
  /** Ends the limit on reading, so that the rest of the output is read at once. */
  close(): void;
}

/** Keeps the end of the output of `streams` in bounded memory. */
export function keepOutputTail(streams: readonly Readable[]): OutputTail {
  let chunks: Buffer[] = [];
  let chunkBytes = 0;
  let inWindow = 0;
  let windowBegan = 0;
  let pause: NodeJS.Timeout | undefined;
  let closed = false;
  const decoder = new StringDecoder('utf8');

  const compact = (): void => {
    chunks = [Buffer.concat(chunks).subarray(-keptBytes)];
    chunkBytes = chunks[0]?.length ?? 0;
  };
  const resume = (): void => {
    pause = undefined;
    inWindow = 0;
    for (const stream of streams) stream.resume();
  };
  const throttle = (bytes: number): void => {
    const now = performance.now();
    if (now - windowBegan > windowMs) {
      windowBegan = now;
      inWindow = 0;
    }
    inWindow += bytes;
    if (inWindow <= bytesPerWindow || closed || pause !== undefined) return;
    for (const stream of streams) stream.pause();
    pause = setTimeout(resume, windowMs);
  };

  for (const stream of streams) {
    // Ignores read errors, because the exit code of the process explains more than a broken pipe.
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      chunkBytes += chunk.length;
      if (chunkBytes > 2 * keptBytes) compact();
      throttle(chunk.length);
    });
  }
  return {
    take() {
      compact();
      const text = decoder.write(chunks[0] ?? Buffer.alloc(0)).replaceAll('\u0000', '');
      chunks = [];
      chunkBytes = 0;
      return text;
    },
    text() {
      compact();
      return (chunks[0] ?? Buffer.alloc(0)).toString('utf8').replaceAll('\u0000', '');
    },
    close() {
      closed = true;
      if (pause === undefined) return;
      clearTimeout(pause);
      resume();
    },
  };
}
