/** Events that ask a command to end early. */
type InterruptionCause = 'Ctrl-C' | 'SIGTERM' | 'SIGHUP' | 'the reader of the output has gone';

/** Interruptions of a command. The reason of `first` is its cause. */
export interface Interruption {
  /** Aborted by the first interruption. */
  readonly first: AbortSignal;
  /** Aborted by a later Ctrl-C or SIGTERM: the command ends without waiting for anything. */
  readonly second: AbortSignal;
  /** Removes the handlers. */
  restore(): void;
}

const causes = { SIGINT: 'Ctrl-C', SIGTERM: 'SIGTERM', SIGHUP: 'SIGHUP' } as const;

/** A second SIGTERM within this time counts as the same, because timeout(1) sends SIGTERM to the command and again to its process group. */
const sameSignalMs = 1_000;

/** Handles Ctrl-C, SIGTERM, SIGHUP and a closed standard output instead of ending the process. */
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
    // Only a second Ctrl-C or SIGTERM ends the command at once: a closing terminal may send SIGHUP more than once and also closes the
    // output.
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
