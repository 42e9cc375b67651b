import type { FollowUp } from '../service/inbox.ts';

/** Follow-ups that wait for their turn. */
export interface FollowUpQueue {
  add(followUp: FollowUp): void;
  /** Ends the queue. It accepts no more follow-ups and does not return those that still wait. */
  end(): void;
  /** Waits for the next follow-up that `accept` accepts, and drops the others. Returns undefined when the queue has ended. */
  next(accept: (followUp: FollowUp) => boolean): Promise<FollowUp | undefined>;
}

export function followUpQueue(): FollowUpQueue {
  const waiting: FollowUp[] = [];
  let ended = false;
  let wake = () => {};
  return {
    add(followUp) {
      waiting.push(followUp);
      wake();
    },
    end() {
      ended = true;
      wake();
    },
    async next(accept) {
      while (!ended) {
        const next = waiting.shift();
        if (next !== undefined && accept(next)) return next;
        if (next !== undefined) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return undefined;
    },
  };
}
