/** Test support: counts how often a long computation lets other work run. */

/** Returns how often other work ran until `work` resolved. */
export async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await work;
  isDone = true;
  return turns;
}
