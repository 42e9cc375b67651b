/** Kills a harness that does not end its turn in time after an interrupt. */
import { monotonicMs } from '../builtin-modules.ts';

export interface InterruptDeadline {
  /** Why the harness was killed in this turn; undefined: it was not. */
  readonly exceeded: string | undefined;
  beginTurn(): void;
  /** Starts the deadline. A deadline that is earlier stays. */
  start(graceMs: number): void;
  endTurn(): void;
}

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
