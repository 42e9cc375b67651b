/** Examples of the operations on automations. */
import { type Example, exampleCreator, exampleIds, exampleTimes, runbookPrompt } from './example.ts';

const requested = {
  name: 'Look into alerts',
  prompt: runbookPrompt,
  triggers: [
    {
      provider: 'webhook',
      event: 'received',
      filter: { webhook_ids: [exampleIds.WEBHOOK_UID], payload: { status: ['firing'] } },
    },
    { provider: 'schedule', event: 'cron_fired', schedule: { name: 'morning', cron: '0 9 * * MON-FRI' } },
  ],
  overlap: 'skip',
  concurrency_key: 'alert.id',
};

const automation = {
  uid: exampleIds.AUTOMATION_UID,
  ...requested,
  enabled: true,
  schedules: [
    {
      schedule_id: exampleIds.SCHEDULE_ID,
      name: 'morning',
      cron: '0 9 * * MON-FRI',
      timezone: 'UTC',
      next_run: '2026-10-26T09:00:00.000Z',
      last_ran: null,
    },
  ],
  last_spawn_error: null,
  created_at: exampleTimes.created,
  updated_at: exampleTimes.created,
  created_by: exampleCreator,
  updated_by: exampleCreator,
};

export const automationExamples = {
  listAutomations: { answer: { automations: [automation], page_info: { has_next_page: false } } },
  createAutomation: { body: requested, answer: automation },
  getAutomation: { answer: automation },
  updateAutomation: { body: { ...requested, enabled: false }, answer: { ...automation, enabled: false } },
  listAutomationFires: {
    query: { limit: 10 },
    answer: {
      fires: [
        {
          id: exampleIds.FIRE_ID,
          due_at: exampleTimes.created,
          fired_at: exampleTimes.started,
          outcome: 'skipped',
          reason: '1 of 1 runs are live',
          schedule_name: 'morning',
        },
      ],
      page_info: { has_next_page: false },
    },
  },
  deleteAutomation: { answer: { success: true } },
  testFilter: {
    body: { filter: { status: ['firing'] }, payload: { status: 'resolved' } },
    answer: {
      would_trigger: false,
      checks: [{ check: 'in', path: 'status', passed: false, reason: 'found "resolved"; allowed: "firing"' }],
    },
  },
} as const satisfies Record<string, Example>;
