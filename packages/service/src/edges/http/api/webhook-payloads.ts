/** The payloads of deliveries as files. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { readWebhookDelivery } from '../../../triggers/webhooks/log/deliveries.ts';
import { readWebhook } from '../../../triggers/webhooks/webhooks.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { downloadHeaders, sendContent } from '../server/download.ts';

/** Registers the download of a payload. */
export function registerWebhookPayloadRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
  addRoute(app, routes.getWebhookDeliveryPayload, async ({ principal: { teamId }, params, reply }) => {
    const { factoryUid, webhookUid, deliveryId } = params;
    const webhook = await readWebhook(db, { teamId, factoryUid, webhookUid });
    if (!webhook) return notFound('webhook');
    const found = isUuid(deliveryId) && (await readWebhookDelivery(db, webhook.uid, deliveryId));
    if (!found) return notFound('delivery');
    if (!found.payload)
      return refuse('resource_not_found', {
        detail: 'The delivery has no stored payload: only an accepted one has, until it is deleted to make room.',
      });
    downloadHeaders(reply, `${deliveryId}.json`, 'application/octet-stream');
    await sendContent(reply, found.payload);
    return reply;
  });
}
