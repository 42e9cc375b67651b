import { AutomationTrigger } from '@runyard/contract/automations/automations';
import { expect, test } from 'vitest';
import { draftOf, missingIn, newDraft, triggerOf } from './triggers.ts';

const uid = 'A'.repeat(22);

const stored: Parameters<typeof draftOf>[0][] = [
  {
    provider: 'webhook',
    event: 'received',
    filter: { webhook_ids: [uid], events: ['push'], payload: { action: { in: ['opened'] } } },
  },
  { provider: 'webhook', event: 'received', filter: { webhook_ids: [uid], payload: { 'a.b': ['x'] } } },
  {
    provider: 'schedule',
    event: 'cron_fired',
    schedule: { name: 'night', cron: '0 3 * * *', timezone: 'Europe/Berlin' },
  },
  { provider: 'github', event: 'push', filter: { branches: ['main'] } },
];

test.each(stored)('the draft of a stored trigger becomes the same trigger: %j', (trigger) => {
  expect(triggerOf(draftOf(trigger))).toEqual(trigger);
});

test('an edited draft changes only the edited members, and a cleared time zone or name is left out', () => {
  const draft = draftOf({
    provider: 'schedule',
    event: 'cron_fired',
    schedule: { name: 'night', cron: '0 3 * * *', timezone: 'UTC', note: 'kept' },
  });
  if (draft.kind !== 'schedule') throw new Error('the draft is no schedule');
  const edited = { ...draft, times: { cron: ' @daily ', name: '', timezone: ' ' } };
  expect(triggerOf(edited).schedule).toEqual({ cron: '@daily', note: 'kept' });
});

test('a new draft is incomplete until it selects a webhook, and then the service accepts its trigger', () => {
  const draft = newDraft('webhook');
  expect(missingIn(draft)).toContain('webhook');
  const complete = { ...draft, webhookIds: [uid] } as typeof draft;
  expect(missingIn(complete)).toBeUndefined();
  expect(AutomationTrigger.safeParse(triggerOf(complete)).success).toBe(true);
  expect(AutomationTrigger.safeParse(triggerOf(newDraft('schedule'))).success).toBe(true);
});
