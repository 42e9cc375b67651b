import type { Worker } from './worker.ts';

/** Makes SIGTERM drain the worker, and a second SIGTERM or SIGINT stop it within about six seconds. */
export function endOnSignals(worker: Pick<Worker, 'drain' | 'stop'>): void {
  let asked = false;
  process.on('SIGTERM', () => {
    if (asked) void worker.stop();
    else worker.drain();
    asked = true;
  });
  process.on('SIGINT', () => void worker.stop());
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
