/** The history of schedules. */
import type { ScheduleFire } from '@runyard/contract/schedules/schedules';
import type { Column } from '../../terminal/columns.ts';

/** Returns a time in UTC without seconds. Returns an empty text if there is no time. */
export const inUtc = (time: string | null | undefined): string =>
  time ? `${time.slice(0, 16).replace('T', ' ')} UTC` : '';

/** Returns the columns of a list of fires. `second`: the column after the time. */
export const fireColumns = (second: Column<ScheduleFire>): Column<ScheduleFire>[] => [
  {
    header: 'TIME',
    text: (fire) => inUtc(fire.due_at ?? fire.fired_at),
    raw: (fire) => fire.due_at ?? fire.fired_at,
  },
  second,
  {
    header: 'OUTCOME',
    text: ({ outcome }) => outcome,
    paint: ({ outcome }, colours) =>
      ({ started: colours.green, skipped: colours.yellow, waiting: colours.yellow, failed: colours.red })[outcome],
  },
  { header: 'RUN OR REASON', flexible: true, text: ({ run_id, reason }) => run_id ?? reason ?? '' },
];
