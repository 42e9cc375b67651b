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

/** Ends everything when standard input closes: whoever started us holds its other end, and is gone or wants us gone. */
export function endWithParent(starting: Promise<Pick<Worker, 'stop'>>): void {
  const end = (): void => {
    // A start that fails ends the process by itself.
    starting.then((worker) => worker.stop()).catch(() => {});
  };
  process.stdin.on('error', end);
  process.stdin.on('end', end);
  process.stdin.resume();
}
