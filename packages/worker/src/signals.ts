import { onParentGone } from '@runyard/system/parent-input';
import type { Worker } from './worker.ts';

/**
 * Handles the signals: SIGTERM ends the worker for an upgrade (`terminate`), SIGUSR2 drains it, and SIGINT, or a second signal, stops
 * it within about six seconds.
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
 * Stops the worker when its parent asks for this. When the parent crashed, leaves the sandboxes to the next worker. `waiting`: is aborted,
 * so that a worker that is waiting to start ends.
 */
export function endWithParent(starting: Promise<Pick<Worker, 'stop' | 'leave'>>, waiting: AbortController): void {
  onParentGone((how) => {
    waiting.abort();
    // If the start fails, the process ends anyway.
    starting.then((worker) => (how === 'asked' ? worker.stop() : worker.leave())).catch(() => {});
  });
}
