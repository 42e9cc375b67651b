/** Counts requests that are being forwarded. Fastify does not count them, because their replies are hijacked. */
export interface InFlight {
  /** Aborted when the time limit of `drain` has passed. */
  readonly signal: AbortSignal;
  /** Adds a promise, which must never reject. */
  track(work: Promise<void>): void;
  /** Waits up to `ms` for the requests to end by themselves, then aborts the rest and waits for their end. */
  drain(ms: number): Promise<void>;
}

export function trackInFlight(): InFlight {
  const running = new Set<Promise<void>>();
  const closing = new AbortController();
  return {
    signal: closing.signal,
    track: (work) => {
      running.add(work);
      work.finally(() => running.delete(work));
    },
    drain: async (ms) => {
      const timer = setTimeout(() => closing.abort(), ms);
      await Promise.all(running);
      clearTimeout(timer);
    },
  };
}
