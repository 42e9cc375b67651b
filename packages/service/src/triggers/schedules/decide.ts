import { maxWaitingFires } from '@runyard/contract/limits';
import type { Load } from './live-runs.ts';
import { liveLimitOf, type ScheduleRow } from './schedule-row.ts';

/** The decision of a schedule at one of its times. */
export type Decision =
  /** Creates a run. `cancelsPrevious`: it replaces older live runs, which are cancelled. */
  | { readonly kind: 'start'; readonly cancelsPrevious: boolean }
  | { readonly kind: 'skip'; readonly reason: string }
  | { readonly kind: 'wait'; readonly reason: string };

/** Decides by the overlap policy, from the live runs and the fires that wait for the end of a run. */
export function decide(schedule: Pick<ScheduleRow, 'overlap' | 'max_live_runs'>, { live, waiting }: Load): Decision {
  const limit = liveLimitOf(schedule);
  const { overlap } = schedule;
  if (limit === null || (live < limit && waiting === 0)) return { kind: 'start', cancelsPrevious: false };
  const reason = `${live} of ${limit} runs are live`;
  switch (overlap) {
    case 'allow':
    case 'skip':
      // These fires wait because of an earlier policy; they do not delay this one.
      return live < limit ? { kind: 'start', cancelsPrevious: false } : { kind: 'skip', reason };
    case 'queue':
      return waiting < maxWaitingFires
        ? { kind: 'wait', reason }
        : { kind: 'skip', reason: `${reason}, and ${waiting} fires wait already` };
    case 'cancel_previous':
      return { kind: 'start', cancelsPrevious: live >= limit };
  }
}
