import { maxWebhookBytes } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { SimulateDeliveryRequest } from '@runyard/contract/simulations';
import type { FastifyInstance } from 'fastify';
import { webhooksOf } from '../../automations/automation-row.ts';
import { readAutomation } from '../../automations/automations.ts';
import { readFedBy } from '../../automations/fed.ts';
import { type SimulatedDelivery, simulateStarts } from '../../automations/simulate.ts';
import { parsePayload } from '../../webhooks/ingest/parse-payload.ts';
import { readPayloadOfDelivery, type StoredPayload } from '../../webhooks/log/deliveries.ts';
import { listWebhooks, type StoredWebhook } from '../../webhooks/webhooks.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { invalid, notFound, Refusal } from '../server/problem.ts';

/** Stands for the id of a delivery that is not sent. */
const noDeliveryId = '00000000-0000-0000-0000-000000000000';

/** Returns the payload of a request as a sender would send it. */
function bytesOf(payload: unknown): Buffer | Refusal {
  try {
    const bytes = Buffer.from(JSON.stringify(payload));
    if (bytes.length <= maxWebhookBytes) return bytes;
    return invalid([{ path: 'payload', message: `must have at most ${maxWebhookBytes} bytes as JSON` }]);
  } catch {
    // JSON.stringify throws where the nesting is too deep for its stack.
    return invalid([{ path: 'payload', message: 'nests too deep; send it to the webhook and give its delivery_id' }]);
  }
}

/** Registers the simulation of deliveries. Nothing is created. */
export function registerSimulationRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db } = deps;

  /** Reads the payload that a request names, or takes its own. */
  async function payloadOf(
    team: { readonly teamId: string; readonly factoryUid: string },
    { payload, delivery_id: id, event }: SimulateDeliveryRequest,
  ): Promise<(Omit<StoredPayload, 'webhookUid'> & { readonly webhookUid?: string }) | Refusal> {
    if (id !== undefined) {
      if (event !== undefined)
        return invalid([{ path: 'event', message: 'is that of the delivery; leave it out with delivery_id' }]);
      const stored = await readPayloadOfDelivery(db, team.teamId, team.factoryUid, id);
      return stored ?? notFound('delivery with a stored payload');
    }
    const bytes = bytesOf(payload);
    return bytes instanceof Refusal ? bytes : { bytes, event: event ?? null };
  }

  function deliveryTo(
    webhook: StoredWebhook,
    team: { readonly teamId: string; readonly factoryUid: string },
    request: SimulateDeliveryRequest,
    { bytes, event }: Omit<StoredPayload, 'webhookUid'>,
  ): SimulatedDelivery {
    const parsed = parsePayload(bytes);
    return {
      ...team,
      deliveryId: request.delivery_id ?? noDeliveryId,
      webhookUid: webhook.uid,
      webhookName: webhook.name,
      scheme: webhook.signature_scheme ?? null,
      event,
      body: bytes,
      payload: parsed.ok ? parsed.value : null,
      isAccepted: webhook.enabled,
    };
  }

  addRoute(app, routes.simulateDelivery, async ({ principal: { teamId }, params, body }) => {
    const team = { teamId, factoryUid: params.factoryUid };
    const webhook = (await listWebhooks(db, teamId, params.factoryUid)).find(({ uid }) => uid === params.webhookUid);
    if (!webhook) return notFound('webhook');
    const found = await payloadOf(team, body);
    if (found instanceof Refusal) return found;
    if (found.webhookUid !== undefined && found.webhookUid !== webhook.uid)
      return notFound('delivery with a stored payload');
    const delivery = deliveryTo(webhook, team, body, found);
    const fed = await readFedBy(db, [delivery]);
    return { would_accept: webhook.enabled, automations: await simulateStarts(deps, fed, delivery) };
  });

  addRoute(app, routes.dryRunAutomation, async ({ principal: { teamId }, params, body }) => {
    const team = { teamId, factoryUid: params.factoryUid };
    const row = await readAutomation(db, { ...team, automationUid: params.automationUid });
    if (!row) return notFound('automation');
    const found = await payloadOf(team, body);
    if (found instanceof Refusal) return found;
    const webhooks = await listWebhooks(db, teamId, params.factoryUid);
    const named = found.webhookUid ?? body.webhook_uid;
    if (found.webhookUid !== undefined && (body.webhook_uid ?? found.webhookUid) !== found.webhookUid)
      return invalid([{ path: 'webhook_uid', message: 'must be the webhook of the delivery; leave it out' }]);
    const selects = ({ uid, signature_scheme: scheme }: StoredWebhook): boolean =>
      row.triggers.some((each) => (each.provider === 'github' ? scheme === 'github' : webhooksOf(each).includes(uid)));
    const webhook = webhooks.find(named === undefined ? selects : ({ uid }) => uid === named);
    if (!webhook && named !== undefined) return notFound('webhook');
    if (!webhook)
      return invalid([{ path: 'webhook_uid', message: 'is required: no trigger selects a webhook that exists' }]);
    const delivery = deliveryTo(webhook, team, body, found);
    const [start] = await simulateStarts(deps, [row], delivery);
    return start ?? notFound('automation');
  });
}
