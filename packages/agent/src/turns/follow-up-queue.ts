import type { FollowUp } from '../service/inbox.ts';

/** Follow-ups that wait for their turn. */
export interface FollowUpQueue {
  add(followUp: FollowUp): void;
  /** Ends the queue. From now on, the queue accepts no follow-ups and also drops the waiting follow-ups. */
  end(): void;
  /**
   * Waits for the next follow-up for which `accept` returns true, and drops the follow-ups before it. Returns undefined when the queue has
   * ended.
   */
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
