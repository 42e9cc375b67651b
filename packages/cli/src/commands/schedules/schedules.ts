/** Schedules: prompts that become runs at fixed times. */
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { request } from '../../route-commands/row.ts';
import { create, schedule, update } from './define.ts';
import { fireColumns, inUtc } from './fires.ts';

function statusOf({ enabled, last_spawn_error }: ScheduledAgentItem): string {
  if (!enabled) return 'paused';
  return last_spawn_error ? 'failing' : 'active';
}

const stateLine = ({ id, history }: ScheduledAgentItem): string =>
  history?.next_run ? `${id} is active; its next time is ${inUtc(history.next_run)}` : `${id} is paused`;

/** The commands of `schedules`. */
export const schedules = [
  request('listSchedules', 'list', 'list the schedules of the team, by name', {
    isDefault: true,
    list: {
      of: 'schedules',
      columns: [
        { header: 'SCHEDULE ID', text: ({ id }) => id },
        {
          header: 'STATUS',
          text: statusOf,
          paint: ({ enabled, last_spawn_error }, colours) =>
            last_spawn_error ? colours.red : enabled ? colours.green : colours.yellow,
        },
        { header: 'CRON', text: ({ cron_schedule }) => cron_schedule },
        {
          header: 'NEXT',
          text: ({ history }) => inUtc(history?.next_run),
          raw: ({ history }) => history?.next_run ?? '',
        },
        { header: 'LAST', ago: ({ history }) => history?.last_ran, never: 'never' },
        { header: 'NAME', flexible: true, text: ({ name }) => name },
      ],
      none: 'no schedules; create one with: bin/runyard schedules create',
    },
  }),
  create,
  request('getSchedule', 'get', 'show a schedule as JSON, with its next times', { arguments: [schedule] }),
  update,
  request('pauseSchedule', 'pause', 'pause a schedule', { arguments: [schedule], orJson: true, lines: stateLine }),
  request('resumeSchedule', 'resume', 'resume a schedule', { arguments: [schedule], orJson: true, lines: stateLine }),
  request('deleteSchedule', 'delete', 'delete a schedule; its runs stay', {
    arguments: [schedule],
    lines: (_, { scheduleId }) => `${scheduleId} is deleted`,
  }),
  request('runSchedule', 'run', "start a run of a schedule now, and print the run's id", {
    arguments: [schedule],
    orJson: true,
    lines: ({ run_id }) => run_id,
  }),
  request('listScheduleFires', 'history', 'list the times at which a schedule fired, newest first', {
    arguments: [schedule],
    flags: { '--limit <count>': 'limit' },
    list: {
      of: 'fires',
      columns: fireColumns({ header: 'BY', text: ({ due_at }) => (due_at ? 'schedule' : 'hand') }),
      none: 'it has not fired yet',
    },
  }),
];
