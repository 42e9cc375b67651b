/** Bounds how much of the database the ingress uses, so that a flood of deliveries leaves connections to everything else. */

/** Runs work when there is room. `busy`: too much waits already. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T | 'busy'>;

/** Makes a gate: `concurrent` works at a time, in the order of their calls, and at most `waiting` that wait. */
export function makeGate({ concurrent, waiting }: { readonly concurrent: number; readonly waiting: number }): Gate {
  let running = 0;
  const queue: (() => void)[] = [];
  return async (work) => {
    if (running >= concurrent) {
      if (queue.length >= waiting) return 'busy';
      // The place of the work that ends goes to the first one that waits.
      await new Promise<void>((resolve) => queue.push(resolve));
    } else running += 1;
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next) next();
      else running -= 1;
    }
  };
}
