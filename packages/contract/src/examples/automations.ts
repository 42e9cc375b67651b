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
  ],
  overlap: 'skip',
  concurrency_key: 'alert.id',
};

const automation = {
  uid: exampleIds.AUTOMATION_UID,
  ...requested,
  enabled: true,
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
  deleteAutomation: { answer: { success: true } },
  testFilter: {
    body: { filter: { status: ['firing'] }, payload: { status: 'resolved' } },
    answer: {
      would_trigger: false,
      checks: [{ check: 'in', path: 'status', passed: false, reason: 'found "resolved"; allowed: "firing"' }],
    },
  },
} as const satisfies Record<string, Example>;
