import { monotonicMs } from '../builtin-modules.ts';

interface InterruptDeadline {
  /** The reason why the harness was killed in this turn; undefined if it was not killed. */
  readonly exceeded: string | undefined;
  beginTurn(): void;
  /** Starts the deadline. If a deadline is already running, keeps the deadline that ends first. */
  start(graceMs: number): void;
  endTurn(): void;
}

/** Kills a harness that does not end its turn in time after an interrupt. */
export function interruptDeadline(harness: string, kill: () => void): InterruptDeadline {
  let timer: NodeJS.Timeout | undefined;
  let deadlineAt = Number.POSITIVE_INFINITY;
  let exceeded: string | undefined;
  return {
    get exceeded() {
      return exceeded;
    },
    beginTurn() {
      exceeded = undefined;
    },
    start(graceMs) {
      if (monotonicMs() + graceMs >= deadlineAt) return;
      deadlineAt = monotonicMs() + graceMs;
      clearTimeout(timer);
      timer = setTimeout(() => {
        exceeded = `The harness ${harness} did not end its turn within ${graceMs / 1000} s of the interrupt and was killed.`;
        kill();
      }, graceMs);
    },
    endTurn() {
      clearTimeout(timer);
      deadlineAt = Number.POSITIVE_INFINITY;
    },
  };
}
