/** Events that ask a command to end early. */
type InterruptionCause = 'Ctrl-C' | 'SIGTERM' | 'SIGHUP' | 'the reader of the output has gone';

/** The interruptions of a command as signals. The reason of `first` is the cause of the first interruption. */
export interface Interruption {
  /** Aborted by the first interruption. */
  readonly first: AbortSignal;
  /** Aborted by a later Ctrl-C or SIGTERM. Then the command must end at once. */
  readonly second: AbortSignal;
  /** Removes the handlers. */
  restore(): void;
}

const causes = { SIGINT: 'Ctrl-C', SIGTERM: 'SIGTERM', SIGHUP: 'SIGHUP' } as const;

/**
 * A second SIGTERM within this time is not counted as a second interruption, because timeout(1) sends SIGTERM first to the command and
 * then again to its process group.
 */
const sameSignalMs = 1_000;

/** Handles Ctrl-C, SIGTERM, SIGHUP and a closed standard output, which would otherwise end the process. */
export function watchInterruptions(): Interruption {
  const first = new AbortController();
  const second = new AbortController();
  let firstAt = 0;

  function interrupt(cause: InterruptionCause): void {
    if (!first.signal.aborted) {
      firstAt = performance.now();
      first.abort(cause);
      return;
    }
    // SIGHUP and a closed output are not counted as a second interruption, because a terminal that closes may send SIGHUP more than
    // once and also closes the output.
    const isRepeated =
      cause === 'SIGTERM' && first.signal.reason === cause && performance.now() - firstAt < sameSignalMs;
    if (cause === 'Ctrl-C' || (cause === 'SIGTERM' && !isRepeated)) second.abort(cause);
  }
  const onSignal = (signal: keyof typeof causes) => interrupt(causes[signal]);
  const onClosed = () => interrupt('the reader of the output has gone');
  const ignore = () => {};

  const before = process.stdout.listeners('error') as ((error: Error) => void)[];
  process.stdout.removeAllListeners('error').on('error', onClosed);
  process.stderr.on('error', ignore);
  const signals = Object.keys(causes) as (keyof typeof causes)[];
  for (const signal of signals) process.on(signal, onSignal);
  return {
    first: first.signal,
    second: second.signal,
    restore() {
      for (const signal of signals) process.off(signal, onSignal);
      process.stderr.off('error', ignore);
      process.stdout.off('error', onClosed);
      for (const listener of before) process.stdout.on('error', listener);
    },
  };
}
