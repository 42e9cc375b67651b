/** Thrown by `whileAllowed` when a push must stop, so that the remaining bytes are not forwarded. The error's message is the reason. */
export class PushStopped extends Error {}

const askEveryMs = 1_000;

/**
 * Forwards the body of a push while the push is allowed. Calls `findStop` once a second, and once before the last piece; the last piece
 * waits for the result. A code host changes nothing before it has the end of the pack. `findStop` returns the reason to stop. Throws
 * `PushStopped`.
 */
export async function* whileAllowed(
  body: AsyncIterable<Buffer>,
  findStop: () => Promise<string | undefined>,
): AsyncGenerator<Buffer> {
  let waitingBytes: Buffer | undefined;
  let askedAt = performance.now();
  const ask = async (): Promise<void> => {
    const reason = await findStop();
    if (reason !== undefined) throw new PushStopped(reason);
    askedAt = performance.now();
  };
  for await (const piece of body) {
    if (performance.now() - askedAt > askEveryMs) await ask();
    if (waitingBytes !== undefined) yield waitingBytes;
    waitingBytes = piece;
  }
  await ask();
  if (waitingBytes !== undefined) yield waitingBytes;
}
