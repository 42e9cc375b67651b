/** Examples of the lists and the stream over all factories. */

import { exampleDelivery, exampleWebhook } from '../webhooks/examples.ts';
import { type Example, exampleIds, exampleTimes } from '../wire/example.ts';
import { exampleAutomation } from './examples.ts';

const ofFactory = { factory_uid: exampleIds.FACTORY_UID, factory_name: 'Billing' };
const page_info = { has_next_page: false };

const { prompt: _prompt, ...shownAutomation } = exampleAutomation;
const delivery = {
  ...exampleDelivery,
  webhook_uid: exampleIds.WEBHOOK_UID,
  webhook_name: 'Alerts',
  factory_uid: exampleIds.FACTORY_UID,
};
const event = { type: 'delivery', delivery };

export const teamTriggerExamples = {
  listTeamWebhooks: {
    query: { limit: 10 },
    answer: {
      webhooks: [
        {
          ...exampleWebhook,
          ...ofFactory,
          last_24_hours: { accepted: 12, duplicate: 1, rejected: 0 },
          last_delivery: {
            delivery_id: exampleIds.WEBHOOK_DELIVERY_ID,
            label: 'ACCEPTED',
            received_at: exampleTimes.created,
            runs: 1,
          },
        },
      ],
      page_info,
    },
  },
  listTeamAutomations: {
    query: { limit: 10 },
    answer: {
      automations: [
        {
          ...shownAutomation,
          ...ofFactory,
          last_24_hours: { started: 11, skipped: 1, waiting: 0, failed: 0 },
          last_fire: { fired_at: exampleTimes.created, outcome: 'skipped', reason: '1 of 1 runs are live' },
        },
      ],
      page_info,
    },
  },
  listTeamDeliveries: {
    query: { label: 'ACCEPTED', received_after: exampleTimes.created, limit: 10 },
    answer: { deliveries: [delivery], page_info },
  },
  streamTeamDeliveries: {
    answer: `id: 1\nevent: delivery\ndata: ${JSON.stringify(event)}\n\n`,
  },
} as const satisfies Record<string, Example>;
