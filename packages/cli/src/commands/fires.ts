/** Prints the history of schedules. */
import type { ListScheduleFiresResponse, ScheduleFire } from '@runyard/contract/schedules/schedules';
import type { Context } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { printList } from '../live/list.ts';

/** Returns a time in UTC without seconds. Returns an empty text if there is no time. */
export const inUtc = (time: string | null | undefined): string =>
  time ? `${time.slice(0, 16).replace('T', ' ')} UTC` : '';

/** Prints the fires of schedules, newest first. `second`: the column after the time. */
export function printFires(
  context: Context,
  found: ListScheduleFiresResponse,
  second: Column<ScheduleFire>,
  options: { readonly json?: true },
): void {
  const columns: Column<ScheduleFire>[] = [
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
  printList(context, { columns, rows: found.fires, json: found, none: 'it has not fired yet' }, options);
}
