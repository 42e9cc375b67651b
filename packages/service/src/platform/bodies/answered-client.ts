import type { ServerResponse } from 'node:http';

/** Returns a signal that is aborted when the answer was sent or the client has disconnected. */
export function closedSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  // Abort now if the client has already disconnected, because no `close` event follows in this case.
  if (response.destroyed) closed.abort();
  return closed.signal;
}

/** A client may read at any speed for the first `graceMs` milliseconds. After that, its average speed must be at least `bytesPerSecond`. */
const graceMs = 30_000;
const bytesPerSecond = 64 * 1024;

/**
 * Forwards the pieces of an answer. Calls `giveUp` if the client reads the pieces too slowly, because other requests wait for the same
 * memory. The time that the service needs to make the pieces does not count.
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
