import { onParentGone } from '@runyard/system/parent-input';
import type { Worker } from './worker.ts';

/**
 * Handles the signals to a worker process. SIGTERM ends the worker for an upgrade (`terminate`). SIGUSR2 drains the worker. SIGINT stops
 * the worker within about six seconds. Any second signal stops the worker in the same way.
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
 * Stops the worker when the parent process asks for it. If the parent has crashed, the worker leaves its sandboxes to the next worker.
 * In both cases, aborts `waiting`, so that a worker that still waits for its start ends too.
 */
export function endWithParent(starting: Promise<Pick<Worker, 'stop' | 'leave'>>, waiting: AbortController): void {
  onParentGone((how) => {
    waiting.abort();
    // Ignores a failed start, because then the process ends in any case.
    starting.then((worker) => (how === 'asked' ? worker.stop() : worker.leave())).catch(() => {});
  });
}
