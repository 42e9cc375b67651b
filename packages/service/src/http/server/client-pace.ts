/** Time in which nothing has to be taken, milliseconds, and the least that a client takes from then on. */
const graceMs = 30_000;
const bytesPerSecond = 64 * 1024;

/**
 * Passes pieces on, and calls `giveUp` where the client takes them so slowly that it holds up others who wait for the same room.
 * What the pieces themselves take to be made does not count.
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
