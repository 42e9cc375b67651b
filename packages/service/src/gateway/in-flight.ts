/** Requests that are being passed on: they outlive Fastify's own account of them, because their replies are hijacked. */
export interface InFlight {
  /** Aborted when the time of `drain` is over. */
  readonly signal: AbortSignal;
  /** Must be called with a promise that never rejects. */
  track(work: Promise<void>): void;
  /** Waits `ms` for them to end by themselves, then breaks them off and waits for that. */
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
