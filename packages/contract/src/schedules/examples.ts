/** Examples of the operations on schedules. */
import {
  type Example,
  exampleCreator,
  exampleIds,
  exampleScope,
  exampleTimes,
  runbookPrompt,
} from '../wire/example.ts';

const { SCHEDULE_ID: scheduleId, FIRE_ID: fireId, RUN_ID: runId } = exampleIds;
const { created, started } = exampleTimes;
const nextRun = '2026-10-26T08:00:00.000Z';

const requested = {
  name: 'Every morning',
  cron_schedule: '0 9 * * MON-FRI',
  timezone: 'Europe/Berlin',
  prompt: runbookPrompt,
  overlap: 'skip',
};
const item = {
  id: scheduleId,
  ...requested,
  enabled: true,
  created_at: created,
  updated_at: created,
  history: { last_ran: null, next_run: nextRun },
  last_spawn_error: null,
  scope: exampleScope,
  created_by: exampleCreator,
  updated_by: exampleCreator,
  executor: exampleCreator,
};
const fire = { id: fireId, due_at: created, fired_at: started, outcome: 'started', run_id: runId };
const whole = { ...item, upcoming_runs: [nextRun, '2026-10-27T08:00:00.000Z'] };
const paused = { ...item, enabled: false, history: { last_ran: null, next_run: null }, upcoming_runs: [] };

export const scheduleExamples = {
  listSchedules: { query: { include: ['fires'] }, answer: { schedules: [{ ...item, last_fires: [fire] }] } },
  createSchedule: { body: requested, answer: whole },
  previewSchedule: {
    body: { cron_schedule: '0 9 * * MON-FRI', timezone: 'Europe/Berlin' },
    answer: { upcoming_runs: whole.upcoming_runs, timezone: 'Europe/Berlin' },
  },
  getSchedule: { answer: whole },
  updateSchedule: { body: { ...requested, enabled: true, overlap: 'queue' }, answer: { ...whole, overlap: 'queue' } },
  deleteSchedule: { answer: { success: true } },
  pauseSchedule: { answer: paused },
  resumeSchedule: { answer: whole },
  runSchedule: { answer: { run_id: runId, task_id: runId, state: 'QUEUED', at_capacity: false } },
  listScheduleFires: {
    query: { limit: 10 },
    answer: {
      fires: [fire],
      page_info: { has_next_page: false },
    },
  },
} as const satisfies Record<string, Example>;
