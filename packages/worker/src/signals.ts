import { onParentGone } from '@runyard/system/parent-input';
import type { Worker } from './worker.ts';

/**
 * Handles the signals. SIGTERM ends the worker for an upgrade (`terminate`). SIGUSR2 drains the worker. SIGINT, or any second signal, stops
 * the worker within about six seconds.
 */
export function endOnSignals(worker: Pick<Worker, 'terminate' | 'drain' | 'stop'>): void {
  let asked = false;
  const on = (signal: NodeJS.Signals, end: () => void): void => {
    process.on(signal, () => {
      if (asked) void worker.stop();
      else end();
      asked = true;
    });
  };
  on('SIGTERM', () => worker.terminate());
  on('SIGUSR2', () => worker.drain());
  on('SIGINT', () => void worker.stop());
}

/**
 * Stops the worker when its parent asks for it. If the parent crashed, leaves the sandboxes to the next worker. Also aborts `waiting`, so
 * that a worker ends that is still waiting to start.
 */
export function endWithParent(starting: Promise<Pick<Worker, 'stop' | 'leave'>>, waiting: AbortController): void {
  onParentGone((how) => {
    waiting.abort();
    // Ignores a failed start, because the process then ends anyway.
    starting.then((worker) => (how === 'asked' ? worker.stop() : worker.leave())).catch(() => {});
  });
}
