/** Examples of the operations on automations. */
import { type Example, exampleCreator, exampleIds, exampleTimes, runbookPrompt } from '../wire/example.ts';

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

export const exampleAutomation = {
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
  executor: exampleCreator,
};

const simulated = {
  automation_id: exampleIds.AUTOMATION_UID,
  name: 'Look into alerts',
  matched: true,
  would_start: true,
  run: {
    title: 'Look into alerts',
    prompt: `${runbookPrompt}\n\n---\nThis run was started by the delivery …`,
    config: { name: 'Look into alerts' },
    metadata: {
      automation_id: exampleIds.AUTOMATION_UID,
      factory_uid: exampleIds.FACTORY_UID,
      webhook_uid: exampleIds.WEBHOOK_UID,
      delivery_id: '00000000-0000-0000-0000-000000000000',
    },
    attachments: [{ file_name: 'event-payload.json', mime_type: 'application/json', size_bytes: 36 }],
  },
};

export const automationExamples = {
  listAutomations: { answer: { automations: [exampleAutomation], page_info: { has_next_page: false } } },
  createAutomation: { body: requested, answer: exampleAutomation },
  getAutomation: { answer: exampleAutomation },
  updateAutomation: { body: { ...requested, enabled: false }, answer: { ...exampleAutomation, enabled: false } },
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
  testFilterOnDeliveries: {
    body: { filter: { status: ['firing'] }, webhook_uid: exampleIds.WEBHOOK_UID, limit: 50 },
    answer: {
      compared: 2,
      matched: 1,
      deliveries: [
        {
          delivery_id: exampleIds.WEBHOOK_DELIVERY_ID,
          received_at: exampleTimes.ended,
          would_trigger: false,
          checks: [{ check: 'in', path: 'status', passed: false, reason: 'found "resolved"; allowed: "firing"' }],
        },
        {
          delivery_id: '019a1c54-2a3b-7d04-9c18-e5f6a7b80c95',
          received_at: exampleTimes.created,
          would_trigger: true,
          checks: [],
        },
      ],
    },
  },
  dryRunAutomation: { body: { payload: { status: 'firing', alert: { id: 7 } } }, answer: simulated },
  simulateDelivery: {
    body: { payload: { status: 'firing', alert: { id: 7 } } },
    answer: { would_accept: true, automations: [simulated] },
  },
} as const satisfies Record<string, Example>;
