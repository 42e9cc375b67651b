import type { Readable } from 'node:stream';

/** Bytes that are kept of what an agent process prints: enough for a stack trace in a failure message. */
const keptBytes = 64 * 1024;
/** A stream that brings more than this in a window is left unread until the window is over, so that a flood costs no CPU here. */
const bytesPerWindow = 4 * 1024 * 1024;
const windowMs = 250;

export interface OutputTail {
  /** Text of what is kept; invalid UTF-8 becomes U+FFFD, NUL characters are dropped. */
  text(): string;
  /** Ends the throttling, so that nothing waits for a window that nobody needs. */
  close(): void;
}

/** Keeps the end of what `streams` bring, in a bounded amount of memory however much that is. */
export function keepOutputTail(streams: readonly Readable[]): OutputTail {
  let chunks: Buffer[] = [];
  let kept = 0;
  let inWindow = 0;
  let windowBegan = 0;
  let pause: NodeJS.Timeout | undefined;
  let closed = false;

  const compact = (): void => {
    chunks = [Buffer.concat(chunks).subarray(-keptBytes)];
    kept = chunks[0]?.length ?? 0;
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
    // A reset of the pipe says nothing that the exit of the process does not say.
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      kept += chunk.length;
      if (kept > 2 * keptBytes) compact();
      throttle(chunk.length);
    });
  }
  return {
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
