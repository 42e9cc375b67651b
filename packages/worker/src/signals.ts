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

/** Stops the worker when standard input closes: the parent process has ended or asks it to stop. */
export function endWithParent(starting: Promise<Pick<Worker, 'stop'>>): void {
  const end = (): void => {
    // If the start fails, the process ends anyway.
    starting.then((worker) => worker.stop()).catch(() => {});
  };
  process.stdin.on('error', end);
  process.stdin.on('end', end);
  process.stdin.resume();
}
