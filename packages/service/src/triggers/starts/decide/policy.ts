import { maxWaitingFires } from '@runyard/contract/limits';
import type { OverlapPolicy } from '@runyard/contract/schedules/schedules';
import type { Load } from '../../history/load.ts';

/** When runs of one lane may be live at the same time. */
export interface StartPolicy {
  readonly overlap: OverlapPolicy;
  /** Null: any number for `allow`, else 1. */
  readonly max_live_runs: number | null;
}

/** The decision about an event. */
export type Decision =
  /** Creates a run. `cancelsPrevious`: it replaces older live runs, which are cancelled. */
  | { readonly kind: 'start'; readonly cancelsPrevious: boolean }
  | { readonly kind: 'skip'; readonly reason: string }
  | { readonly kind: 'wait'; readonly reason: string };

/** Returns how many runs of a lane may be live at once; null: any number. */
export const liveLimitOf = ({ overlap, max_live_runs }: StartPolicy): number | null =>
  max_live_runs ?? (overlap === 'allow' ? null : 1);

/** Decides by the overlap policy, from the live runs of the lane and the starts that wait for the end of one. */
export function decide(policy: StartPolicy, { live, waiting }: Load): Decision {
  const limit = liveLimitOf(policy);
  if (limit === null || (live < limit && waiting === 0)) return { kind: 'start', cancelsPrevious: false };
  const reason = `${live} of ${limit} runs are live`;
  switch (policy.overlap) {
    case 'allow':
    case 'skip':
      // These starts wait because of an earlier policy; they do not delay this one.
      return live < limit ? { kind: 'start', cancelsPrevious: false } : { kind: 'skip', reason };
    case 'queue':
      return waiting < maxWaitingFires
        ? { kind: 'wait', reason }
        : { kind: 'skip', reason: `${reason}, and ${waiting} fires wait already` };
    case 'cancel_previous':
      return { kind: 'start', cancelsPrevious: live >= limit };
  }
}
