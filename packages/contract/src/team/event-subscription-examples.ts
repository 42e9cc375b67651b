/** Examples of the operations on event subscriptions. */
import { type Example, exampleIds, exampleTimes } from '../wire/example.ts';

const { SUBSCRIPTION_ID: subscriptionId, DELIVERY_ID: deliveryId, RUN_ID: runId } = exampleIds;
const { created, ended } = exampleTimes;

const requested = {
  name: 'Chat',
  url: 'https://example.com/hooks/runs',
  events: ['run.blocked', 'run.ended'],
  filter: { metadata: { ticket: 'OPS-7' } },
};
const subscription = { id: subscriptionId, ...requested, enabled: true, created_at: created, updated_at: created };
const withSecret = { ...subscription, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw8OJ4mH5nXe0=' };
const pending = {
  id: deliveryId,
  event: 'run.ended',
  run_id: runId,
  status: 'pending',
  occurred_at: ended,
  next_attempt_at: ended,
  attempts: [],
};

export const eventSubscriptionExamples = {
  listEventSubscriptions: { answer: { subscriptions: [subscription] } },
  createEventSubscription: { body: requested, answer: withSecret },
  getEventSubscription: { answer: subscription },
  updateEventSubscription: { body: { enabled: false }, answer: { ...subscription, enabled: false } },
  deleteEventSubscription: { answer: { success: true } },
  rotateEventSubscriptionSecret: { answer: withSecret },
  testEventSubscription: { answer: { ...pending, event: 'ping', run_id: undefined } },
  listEventDeliveries: {
    query: { limit: 10 },
    answer: {
      deliveries: [
        {
          ...pending,
          status: 'delivered',
          next_attempt_at: undefined,
          delivered_at: ended,
          attempts: [{ number: 1, started_at: ended, duration_ms: 85, status: 204 }],
        },
      ],
      page_info: { has_next_page: false },
    },
  },
  redeliverEvent: { answer: pending },
} as const satisfies Record<string, Example>;

/** Body of a delivery. */
export const deliveredEvent = {
  type: 'run.ended',
  timestamp: ended,
  data: { run_id: runId, state: 'SUCCEEDED', seq: 12, subscription_id: subscriptionId },
};
