import { setTimeout as delay } from 'node:timers/promises';
import type { Notices } from './notices.ts';

interface Wait {
  /**
   * Returns the ids of the runs: a notice about one of them ends a pause. This function is called again after each read, because a read
   * may find further runs.
   */
  runIds(): readonly string[];
  readonly waitMs: number;
  /** Aborts when the caller does not need the answer any more. */
  readonly signal?: AbortSignal;
  /** Minimum time between two reads, in milliseconds. All notices within this time lead to one read. Default: 0. */
  readonly restMs?: number;
  beforePause?(): Promise<void>;
}

/**
 * Calls `look` at once, and again after each notice about the runs, until `look` returns a value. Returns `undefined` when `waitMs`
 * milliseconds have passed or the signal aborts. No notice is missed: a notice between a read and the pause after it causes another read.
 */
export async function waitForRuns<T>(
  notices: Pick<Notices, 'onRun'>,
  { runIds, waitMs, signal, restMs = 0, beforePause }: Wait,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const deadline = performance.now() + waitMs;
  let noticed = Promise.withResolvers<void>();
  const wake = () => noticed.resolve();
  const listening = new Map<string, () => void>();
  /** Returns true if it now listens to a run to which it did not listen before. */
  const listen = (): boolean => {
    const further = runIds().filter((runId) => !listening.has(runId));
    for (const runId of further) listening.set(runId, notices.onRun(runId, wake));
    return further.length > 0;
  };
  signal?.addEventListener('abort', wake, { once: true });
  try {
    listen();
    for (;;) {
      noticed = Promise.withResolvers<void>();
      const nextLook = performance.now() + restMs;
      const value = await look();
      if (value !== undefined) return value;
      if (performance.now() >= deadline || signal?.aborted) return undefined;
      // Read again at once after listening to a further run, because a notice about that run may have come earlier.
      if (listen()) continue;
      await beforePause?.();
      const timer = setTimeout(wake, deadline - performance.now());
      await noticed.promise;
      clearTimeout(timer);
      if (signal?.aborted) return undefined;
      const early = Math.min(nextLook, deadline) - performance.now();
      if (early > 0 && !signal?.aborted) await delay(early);
    }
  } finally {
    for (const stop of listening.values()) stop();
    signal?.removeEventListener('abort', wake);
  }
}
