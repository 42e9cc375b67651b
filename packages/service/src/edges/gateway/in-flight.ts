/** Counts requests that are being forwarded. Fastify does not count them, because their replies are hijacked. */
export interface InFlight {
  /** Aborted when the time limit of `drain` has passed. */
  readonly signal: AbortSignal;
  /** Adds a promise, which must never reject. */
  track(work: Promise<void>): void;
  /** Waits up to `ms` until the requests end by themselves. Then aborts the requests that are still in flight, and waits until they end. */
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
