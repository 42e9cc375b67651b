/** Thrown in place of the rest of a push whose run has ended or is stopping. */
export class RunOver extends Error {}

const askEveryMs = 1_000;

/**
 * Passes the body of a push on while its run is at work: asks once a second, and before the last piece, which is held back for that. A code
 * host changes nothing without the end of the pack. Throws `RunOver`.
 */
export async function* whileAtWork(
  body: AsyncIterable<Buffer>,
  isAtWork: () => Promise<boolean>,
): AsyncGenerator<Buffer> {
  let held: Buffer | undefined;
  let askedAt = performance.now();
  const ask = async (): Promise<void> => {
    if (!(await isAtWork())) throw new RunOver('the run has ended or is stopping');
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
