import type { ServerResponse } from 'node:http';

/** Returns a signal that is aborted when the answer was sent or the client has disconnected. */
export function closedSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  // If the client has already disconnected, no `close` event follows.
  if (response.destroyed) closed.abort();
  return closed.signal;
}

/** Milliseconds at the start without a check of the client's speed, and the lowest speed that is accepted after this time. */
const graceMs = 30_000;
const bytesPerSecond = 64 * 1024;

/**
 * Forwards the pieces of an answer. Calls `giveUp` if the client reads the pieces too slowly, because other requests wait for the same
 * memory. The time for making the pieces does not count.
 */
export async function* atPace(pieces: AsyncGenerator<Buffer>, giveUp: () => void): AsyncGenerator<Buffer> {
  let waitedMs = 0;
  let passed = 0;
  for await (const piece of pieces) {
    const startedAt = performance.now();
    const leftMs = graceMs + (passed / bytesPerSecond) * 1000 - waitedMs;
    const timer = setTimeout(giveUp, Math.max(0, leftMs));
    try {
      yield piece;
    } finally {
      clearTimeout(timer);
    }
    waitedMs += performance.now() - startedAt;
    passed += piece.byteLength;
  }
}
