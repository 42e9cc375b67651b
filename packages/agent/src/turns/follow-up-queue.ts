import type { FollowUp } from '../service/inbox.ts';

/** Follow-ups that arrived and are not played yet. */
export interface FollowUps {
  add(followUp: FollowUp): void;
  /** Nothing more comes. */
  end(): void;
  /** The next one for which `accept` holds, when it is there; the others are dropped. Undefined: nothing more comes. */
  next(accept: (followUp: FollowUp) => boolean): Promise<FollowUp | undefined>;
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
    async next(accept) {
      for (;;) {
        const next = ended ? undefined : waiting.shift();
        if (ended) return undefined;
        if (next !== undefined && accept(next)) return next;
        if (next !== undefined) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
