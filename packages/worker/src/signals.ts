import type { Worker } from './worker.ts';

/** SIGTERM drains; a second one, or SIGINT, ends everything within about six seconds. */
export function endOnSignals(worker: Pick<Worker, 'drain' | 'stop'>): void {
  let asked = false;
  process.on('SIGTERM', () => {
    if (asked) void worker.stop();
    else worker.drain();
    asked = true;
  });
  process.on('SIGINT', () => void worker.stop());
}
