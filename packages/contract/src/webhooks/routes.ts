import { z } from 'zod';
import { CreateFactoryRequest, Factory, ListFactoriesQuery, ListFactoriesResponse } from '../factories/factories.ts';
import { maxFactories, maxFactoryWebhooks } from '../limits.ts';
import { teamReads, teamWrites } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  CreateWebhookRequest,
  ListWebhookDeliveriesQuery,
  ListWebhookDeliveriesResponse,
  ListWebhooksResponse,
  RotateWebhookSecretRequest,
  UpdateWebhookRequest,
  Webhook,
  WebhookDelivery,
  WebhookDeliveryWithPayload,
  WebhookWithSecret,
} from './webhooks.ts';

const factory = z.object({ factoryUid: z.string().meta({ description: 'UID of the factory' }) });
const webhook = factory.extend({ webhookUid: z.string().meta({ description: 'UID of the webhook' }) });
const delivery = webhook.extend({ deliveryId: z.string().meta({ description: 'Id of the delivery' }) });
const noFactory = { 404: 'No such factory, or it belongs to another team' };
const noWebhook = { 404: 'No such webhook, or it belongs to another factory or team' };
const noDelivery = { 404: 'No such delivery, or it belongs to another webhook' };

/**
 * Members of the team are accepted, but agent keys are not. The reason: as long as a webhook exists, an external sender can start
 * agents through it.
 */
const members = { user: 'member' } as const;

const factoryPath = '/factory';
const webhooksPath = `${factoryPath}/{factoryUid}/webhooks`;
const webhookPath = `${webhooksPath}/{webhookUid}`;
const deliveriesPath = `${webhookPath}/deliveries`;

export const webhookRoutes = {
  listFactories: {
    method: 'GET',
    path: factoryPath,
    tag: 'factories',
    summary: 'List factories',
    allow: teamReads,
    query: ListFactoriesQuery,
    answer: { status: 200, description: 'A page of factories, by name', schema: ListFactoriesResponse },
    errors: { 400: 'A wrong value, or a cursor of another list' },
  },
  createFactory: {
    method: 'POST',
    path: factoryPath,
    tag: 'factories',
    summary: 'Create a factory',
    allow: members,
    body: CreateFactoryRequest,
    once: 'createFactory',
    answer: { status: 201, description: 'Created', schema: Factory },
    errors: {
      400: 'A wrong value',
      409: `The team has ${maxFactories} factories, or one with this alias, or the Idempotency-Key was used with another body`,
    },
  },
  getFactory: {
    method: 'GET',
    path: `${factoryPath}/{factoryUid}`,
    tag: 'factories',
    summary: 'Read a factory',
    allow: teamReads,
    params: factory,
    answer: { status: 200, description: 'The factory', schema: Factory },
    errors: noFactory,
  },
  deleteFactory: {
    method: 'DELETE',
    path: `${factoryPath}/{factoryUid}`,
    tag: 'factories',
    summary: 'Delete a factory with its webhooks',
    description: 'Senders get 404 at once. Runs that its webhooks started stay.',
    allow: members,
    params: factory,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: noFactory,
  },
  listWebhooks: {
    method: 'GET',
    path: webhooksPath,
    tag: 'webhooks',
    summary: 'List the webhooks of a factory',
    allow: teamReads,
    params: factory,
    answer: { status: 200, description: 'All of the factory, oldest first', schema: ListWebhooksResponse },
    errors: noFactory,
  },
  createWebhook: {
    method: 'POST',
    path: webhooksPath,
    tag: 'webhooks',
    summary: 'Create a webhook',
    description:
      'The secret is in this answer only. A signature webhook without a secret is created disabled: store its secret with rotate-secret. Only with standard_webhooks, the service generates the secret.',
    allow: members,
    params: factory,
    body: CreateWebhookRequest,
    once: 'createWebhook',
    answer: { status: 201, description: 'Created', schema: WebhookWithSecret },
    errors: {
      ...noFactory,
      400: 'A wrong value, or a secret that does not fit the mode',
      409: `The factory has ${maxFactoryWebhooks} webhooks, or the Idempotency-Key was used with another body`,
    },
  },
  getWebhook: {
    method: 'GET',
    path: webhookPath,
    tag: 'webhooks',
    summary: 'Read a webhook',
    allow: teamReads,
    params: webhook,
    answer: { status: 200, description: 'The webhook, without its secret', schema: Webhook },
    errors: noWebhook,
  },
  updateWebhook: {
    method: 'PATCH',
    path: webhookPath,
    tag: 'webhooks',
    summary: 'Change a webhook',
    allow: members,
    params: webhook,
    body: UpdateWebhookRequest,
    answer: { status: 200, description: 'The webhook as it is now', schema: Webhook },
    errors: { ...noWebhook, 400: 'A wrong value', 409: 'It cannot be enabled before its secret is stored' },
  },
  deleteWebhook: {
    method: 'DELETE',
    path: webhookPath,
    tag: 'webhooks',
    summary: 'Delete a webhook with its deliveries',
    description: 'Senders get 404 at once. Automations that select it stay, and no longer fire.',
    allow: members,
    params: webhook,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: noWebhook,
  },
  rotateWebhookSecret: {
    method: 'POST',
    path: `${webhookPath}/rotate-secret`,
    tag: 'webhooks',
    summary: 'Give a webhook a new secret',
    description:
      "The old secret stops working at once, unless grace_seconds gives the sender time. For a signature webhook, the provider's secret is in `secret`; only with standard_webhooks, the service generates it.",
    allow: members,
    params: webhook,
    body: RotateWebhookSecretRequest,
    answer: { status: 200, description: 'With the new secret', schema: WebhookWithSecret },
    errors: {
      ...noWebhook,
      400: 'No secret although the provider makes it, or a secret that the mode cannot use',
      409: 'The webhook uses a secret of the team; change that secret',
    },
  },
  enableWebhook: {
    method: 'POST',
    path: `${webhookPath}/enable`,
    tag: 'webhooks',
    summary: 'Enable a webhook',
    allow: members,
    params: webhook,
    answer: { status: 200, description: 'The webhook as it is now', schema: Webhook },
    errors: { ...noWebhook, 409: 'It cannot be enabled before its secret is stored' },
  },
  disableWebhook: {
    method: 'POST',
    path: `${webhookPath}/disable`,
    tag: 'webhooks',
    summary: 'Disable a webhook',
    description: 'Senders get 404 at once. Automations and deliveries are kept.',
    allow: members,
    params: webhook,
    endsSomething: true,
    answer: { status: 200, description: 'The webhook as it is now', schema: Webhook },
    errors: noWebhook,
  },
  listWebhookDeliveries: {
    method: 'GET',
    path: deliveriesPath,
    tag: 'webhooks',
    summary: 'List the deliveries of a webhook, newest first',
    description:
      'Deliveries are kept for 7 days, accepted deliveries and duplicates for 30 days, and the latest 50 always. Requests that get 404 or 429 are not stored.',
    allow: teamReads,
    params: webhook,
    query: ListWebhookDeliveriesQuery,
    answer: { status: 200, description: 'A page of the log', schema: ListWebhookDeliveriesResponse },
    errors: { ...noWebhook, 400: 'A wrong value, or a cursor of another list' },
  },
  getWebhookDelivery: {
    method: 'GET',
    path: `${deliveriesPath}/{deliveryId}`,
    tag: 'webhooks',
    summary: 'Read a delivery with its payload',
    description: 'Callers need the role of a member: payloads may be confidential.',
    allow: teamWrites,
    params: delivery,
    answer: { status: 200, description: 'The delivery', schema: WebhookDeliveryWithPayload },
    errors: noDelivery,
  },
  getWebhookDeliveryPayload: {
    method: 'GET',
    path: `${deliveriesPath}/{deliveryId}/payload`,
    tag: 'webhooks',
    summary: 'Read the body of a delivery as it was received',
    description:
      'Every byte as the sender sent it, so that a signature over them can be checked. Callers need the role of a member: payloads may be confidential.',
    allow: teamWrites,
    params: delivery,
    answer: { status: 200, description: 'The bytes', contentType: 'application/octet-stream' },
    ranges: true,
    errors: { 404: 'No such delivery, or its payload is not stored' },
  },
  replayWebhookDelivery: {
    method: 'POST',
    path: `${deliveriesPath}/{deliveryId}/replay`,
    tag: 'webhooks',
    summary: 'Evaluate a delivery again',
    description:
      'Makes a new delivery with the payload of an accepted one. It passes all checks of a delivery except authentication, and gets a new identity.',
    allow: teamWrites,
    params: delivery,
    once: 'replayWebhookDelivery',
    answer: { status: 202, description: 'The new delivery', schema: WebhookDelivery },
    errors: {
      ...noDelivery,
      409: 'The webhook is disabled, the delivery has no stored payload, or the Idempotency-Key was used with another request',
      429: 'The webhook has had 60 deliveries within a minute',
    },
  },
} as const satisfies Record<string, Route>;
