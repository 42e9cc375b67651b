/** The reason why a run stops before its end. */
export type StopReason = 'cancelled' | 'terminated' | 'superseded';

export interface Stopping {
  /** Aborts when the run must stop. */
  readonly signal: AbortSignal;
  /** The first reason for the stop. Only `superseded` replaces an earlier reason, because a superseded run must not report anything. */
  readonly reason: StopReason | undefined;
  stop(reason: StopReason): void;
}

export function stopping(): Stopping {
  const abort = new AbortController();
  let reason: StopReason | undefined;
  return {
    signal: abort.signal,
    get reason() {
      return reason;
    },
    stop(next) {
      if (reason === undefined || next === 'superseded') reason = next;
      if (!abort.signal.aborted) abort.abort(new Error(`the run was ${next}`));
    },
  };
}

/** Rejects when the signal aborts. */
export function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Resolves `graceMs` after a stop, when the time for the harness to stop is over. Resolves at once if the run is superseded. */
export function stopDeadline(stop: Stopping, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const onStop = () => {
      const timer = setTimeout(resolve, stop.reason === 'superseded' ? 0 : graceMs);
      timer.unref();
    };
    if (stop.signal.aborted) onStop();
    else stop.signal.addEventListener('abort', onStop, { once: true });
  });
}
