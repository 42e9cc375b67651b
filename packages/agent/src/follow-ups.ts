import type { FollowUp } from './service/inbox.ts';

/** Follow-ups that arrived and are not played yet. */
export interface FollowUps {
  add(followUp: FollowUp): void;
  /** Nothing more comes. */
  end(): void;
  /** The next one, when it is there; undefined: nothing more comes. */
  next(): Promise<FollowUp | undefined>;
}

export function followUpQueue(): FollowUps {
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
    async next() {
      for (;;) {
        const next = ended ? undefined : waiting.shift();
        if (next !== undefined || ended) return next;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
