import { z } from 'zod';
import { maxChangesPerDay, maxSubscriptions } from '../limits.ts';
import { administrators } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  CreateEventSubscriptionRequest,
  EventDelivery,
  EventSubscription,
  EventSubscriptionWithSecret,
  ListDeliveriesQuery,
  ListEventDeliveriesResponse,
  ListEventSubscriptionsResponse,
  UpdateEventSubscriptionRequest,
} from './event-subscriptions.ts';

const path = '/event-subscriptions';
const subscription = z.object({ subscriptionId: z.string().meta({ description: 'Id of the subscription' }) });
const delivery = subscription.extend({ deliveryId: z.string().meta({ description: 'Id of the delivery' }) });
const missing = { 404: 'No such subscription, or it belongs to another team' };

/**
 * Only administrators manage subscriptions, for two reasons. A subscription sends the events of the whole team to an external address,
 * and the URL of a subscription may contain a secret of the receiver.
 */
export const eventSubscriptionRoutes = {
  listEventSubscriptions: {
    method: 'GET',
    path,
    tag: 'event_subscriptions',
    summary: 'List event subscriptions',
    allow: administrators,
    answer: { status: 200, description: 'All of the team, oldest first', schema: ListEventSubscriptionsResponse },
  },
  createEventSubscription: {
    method: 'POST',
    path,
    tag: 'event_subscriptions',
    summary: 'Create an event subscription',
    description:
      'For each event, the service sends a POST to its URL, signed according to Standard Webhooks, at least once: a receiver must remember the webhook-id of handled events. The secret is in this answer only.',
    allow: administrators,
    body: CreateEventSubscriptionRequest,
    once: 'createEventSubscription',
    answer: { status: 201, description: 'Created', schema: EventSubscriptionWithSecret },
    errors: {
      400: 'A wrong type, or a url that deliveries may not go to',
      409: `The team has ${maxSubscriptions} subscriptions, or the Idempotency-Key was used with another body`,
    },
  },
  getEventSubscription: {
    method: 'GET',
    path: `${path}/{subscriptionId}`,
    tag: 'event_subscriptions',
    summary: 'Read an event subscription',
    allow: administrators,
    params: subscription,
    answer: { status: 200, description: 'The subscription', schema: EventSubscription },
    errors: missing,
  },
  updateEventSubscription: {
    method: 'PATCH',
    path: `${path}/{subscriptionId}`,
    tag: 'event_subscriptions',
    summary: 'Change, disable or enable an event subscription',
    description: 'While it is disabled, no events are stored for it; waiting deliveries continue when it is enabled.',
    allow: administrators,
    params: subscription,
    body: UpdateEventSubscriptionRequest,
    answer: { status: 200, description: 'The subscription as it is now', schema: EventSubscription },
    errors: { ...missing, 400: 'A wrong type, or a url that deliveries may not go to' },
  },
  deleteEventSubscription: {
    method: 'DELETE',
    path: `${path}/{subscriptionId}`,
    tag: 'event_subscriptions',
    summary: 'Delete an event subscription with its deliveries',
    allow: administrators,
    params: subscription,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: missing,
  },
  rotateEventSubscriptionSecret: {
    method: 'POST',
    path: `${path}/{subscriptionId}/rotate-secret`,
    tag: 'event_subscriptions',
    summary: 'Give an event subscription a new secret',
    description:
      'For 24 h, deliveries have a signature by each of the two secrets, so that no delivery is refused meanwhile.',
    allow: administrators,
    params: subscription,
    answer: { status: 200, description: 'With the new secret', schema: EventSubscriptionWithSecret },
    errors: { ...missing, 429: `The team has made ${maxChangesPerDay} changes today (UTC)` },
  },
  testEventSubscription: {
    method: 'POST',
    path: `${path}/{subscriptionId}/test`,
    tag: 'event_subscriptions',
    summary: 'Send a ping to the URL of an event subscription',
    description:
      'The ping is sent once, even if the subscription is disabled; its result is in the list of deliveries.',
    allow: administrators,
    params: subscription,
    once: 'testEventSubscription',
    answer: { status: 202, description: 'The ping waits to be sent', schema: EventDelivery },
    errors: { ...missing, 409: 'The Idempotency-Key was used with another request' },
  },
  listEventDeliveries: {
    method: 'GET',
    path: `${path}/{subscriptionId}/deliveries`,
    tag: 'event_subscriptions',
    summary: 'List deliveries, newest first',
    description: 'Kept for 14 days.',
    allow: administrators,
    params: subscription,
    query: ListDeliveriesQuery,
    answer: {
      status: 200,
      description: 'A page of deliveries with their attempts',
      schema: ListEventDeliveriesResponse,
    },
    errors: { ...missing, 400: 'A wrong value, or a cursor of another list' },
  },
  redeliverEvent: {
    method: 'POST',
    path: `${path}/{subscriptionId}/deliveries/{deliveryId}/redeliver`,
    tag: 'event_subscriptions',
    summary: 'Deliver an event again',
    description: 'The delivery is sent now with the same webhook-id, with retries for another 24 h.',
    allow: administrators,
    params: delivery,
    answer: { status: 202, description: 'The delivery waits to be sent', schema: EventDelivery },
    errors: {
      ...missing,
      404: 'No such subscription or delivery, or it belongs to another team',
      409: 'The subscription is disabled, or the delivery is being sent right now',
    },
  },
} as const satisfies Record<string, Route>;
