/** Limits the connections to the database that the ingress uses, so that a flood of deliveries leaves some for all other work. */

/** Runs work when there is room. `busy`: too many calls wait already. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T | 'busy'>;

/** Creates a gate: `concurrent` calls at a time, in their order, and at most `waiting` that wait. */
export function makeGate({ concurrent, waiting }: { readonly concurrent: number; readonly waiting: number }): Gate {
  let running = 0;
  const queue: (() => void)[] = [];
  return async (work) => {
    if (running >= concurrent) {
      if (queue.length >= waiting) return 'busy';
      // The first waiting call gets the place of the one that ends.
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
