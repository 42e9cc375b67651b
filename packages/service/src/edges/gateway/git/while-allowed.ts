/** Thrown in place of the rest of a push that must not go on. The message is the reason. */
export class PushStopped extends Error {}

const askEveryMs = 1_000;

/**
 * Passes the body of a push on while it is allowed: asks once a second, and before the last piece, which is held back for that. A code
 * host changes nothing without the end of the pack. `findStop` returns the reason to stop. Throws `PushStopped`.
 */
export async function* whileAllowed(
  body: AsyncIterable<Buffer>,
  findStop: () => Promise<string | undefined>,
): AsyncGenerator<Buffer> {
  let held: Buffer | undefined;
  let askedAt = performance.now();
  const ask = async (): Promise<void> => {
    const reason = await findStop();
    if (reason !== undefined) throw new PushStopped(reason);
    askedAt = performance.now();
  };
  for await (const piece of body) {
    if (performance.now() - askedAt > askEveryMs) await ask();
    if (held !== undefined) yield held;
    held = piece;
  }
  await ask();
  if (held !== undefined) yield held;
}
