import { maxWebhookBytes } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { schemeOf } from '@runyard/contract/signature-schemes/schemes';
import type { SimulateDeliveryRequest, SimulatedStart } from '@runyard/contract/simulations';
import type { FastifyInstance } from 'fastify';
import { invalid, notFound, Refusal } from '../../../platform/serving/refusal.ts';
import { type AutomationRow, webhooksOf } from '../../../triggers/automations/automation-row.ts';
import { readAutomation } from '../../../triggers/automations/automations.ts';
import { readFedBy } from '../../../triggers/automations/fed.ts';
import { readSchedulesOfAutomations } from '../../../triggers/schedules/of-automation.ts';
import { type SimulatedDelivery, simulateStarts, simulateTime } from '../../../triggers/starts/simulate.ts';
import { parsePayload } from '../../../triggers/webhooks/ingest/parse-payload.ts';
import { readPayloadOfDelivery, type StoredPayload } from '../../../triggers/webhooks/log/deliveries.ts';
import { listWebhooks, type StoredWebhook } from '../../../triggers/webhooks/webhooks.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Used as the id of a delivery that is not sent. */
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

/** The webhook that receives a simulated delivery. */
interface Target extends Pick<StoredWebhook, 'uid' | 'name' | 'signature_scheme'> {
  readonly refusal?: string;
}

const targetOf = (webhook: StoredWebhook): Target =>
  webhook.enabled ? webhook : { ...webhook, refusal: 'the webhook is disabled' };

/** Used as the GitHub webhook of a factory that has none. */
const noGithubWebhook: Target = {
  uid: '0'.repeat(22),
  name: 'github',
  signature_scheme: 'github',
  refusal: 'the factory has no webhook with the signature scheme github',
};

/**
 * Returns the webhook that feeds the automation: the named one, else the first that exists, else one that a trigger selects and that
 * would get nothing. Undefined: there is none with this name, or no trigger accepts deliveries.
 */
function findTarget(
  { triggers }: Pick<AutomationRow, 'triggers'>,
  webhooks: readonly StoredWebhook[],
  named: string | undefined,
  event: string | null,
): Target | undefined {
  const selected = triggers.flatMap(webhooksOf);
  const takesGithub = triggers.some(({ provider }) => provider === 'github');
  const deleted = (named === undefined ? selected : selected.filter((uid) => uid === named)).find(
    (uid) => !webhooks.some((each) => each.uid === uid),
  );
  const selecting = webhooks.filter(
    ({ uid, signature_scheme: scheme }) => selected.includes(uid) || (takesGithub && scheme === 'github'),
  );
  const found =
    named === undefined
      ? (selecting.find(({ signature_scheme: scheme }) => event === null || scheme === 'github') ?? selecting[0])
      : webhooks.find(({ uid }) => uid === named);
  if (found) return targetOf(found);
  if (deleted !== undefined) return { uid: deleted, name: deleted, refusal: `the webhook ${deleted} was deleted` };
  return named === undefined && takesGithub ? noGithubWebhook : undefined;
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
    { uid, name, signature_scheme: scheme, refusal }: Target,
    team: { readonly teamId: string; readonly factoryUid: string },
    request: SimulateDeliveryRequest,
    { bytes, event }: Omit<StoredPayload, 'webhookUid'>,
  ): SimulatedDelivery {
    const parsed = parsePayload(bytes, schemeOf(scheme));
    return {
      ...team,
      deliveryId: request.delivery_id ?? noDeliveryId,
      webhookUid: uid,
      webhookName: name,
      scheme: scheme ?? null,
      event,
      body: bytes,
      payload: parsed.ok ? parsed.value : null,
      ...(refusal === undefined ? {} : { refusal }),
    };
  }

  async function dryRunTime(row: AutomationRow, name: string): Promise<SimulatedStart | Refusal> {
    const schedules = await readSchedulesOfAutomations(db, [row.uid]);
    const schedule = schedules.find(({ trigger_name: each }) => each === name);
    if (schedule) return await simulateTime(deps, row, schedule);
    // Schedules that were made in one millisecond have no order of their own.
    const names = schedules
      .map(({ trigger_name: each }) => JSON.stringify(each))
      .toSorted()
      .join(', ');
    const message = `is no schedule trigger of the automation; it has ${names || 'none'}`;
    return invalid([{ path: 'schedule_name', message }]);
  }

  addRoute(app, routes.simulateDelivery, async ({ principal: { teamId }, params, body }) => {
    const team = { teamId, factoryUid: params.factoryUid };
    const webhook = (await listWebhooks(db, teamId, params.factoryUid)).find(({ uid }) => uid === params.webhookUid);
    if (!webhook) return notFound('webhook');
    const found = await payloadOf(team, body);
    if (found instanceof Refusal) return found;
    if (found.webhookUid !== undefined && found.webhookUid !== webhook.uid)
      return notFound('delivery with a stored payload');
    const delivery = deliveryTo(targetOf(webhook), team, body, found);
    const fed = await readFedBy(db, [delivery]);
    return { would_accept: webhook.enabled, automations: await simulateStarts(deps, fed, delivery) };
  });

  addRoute(app, routes.dryRunAutomation, async ({ principal: { teamId }, params, body }) => {
    const team = { teamId, factoryUid: params.factoryUid };
    const row = await readAutomation(db, { ...team, automationUid: params.automationUid });
    if (!row) return notFound('automation');
    if (body.schedule_name !== undefined) return await dryRunTime(row, body.schedule_name);
    const found = await payloadOf(team, body);
    if (found instanceof Refusal) return found;
    const named = found.webhookUid ?? body.webhook_uid;
    if (found.webhookUid !== undefined && (body.webhook_uid ?? found.webhookUid) !== found.webhookUid)
      return invalid([{ path: 'webhook_uid', message: 'must be the webhook of the delivery; leave it out' }]);
    const webhooks = await listWebhooks(db, teamId, params.factoryUid);
    const target = findTarget(row, webhooks, named, found.event);
    if (!target && named !== undefined) return notFound('webhook');
    if (!target)
      return invalid([
        { path: 'payload', message: 'no trigger takes deliveries; try a schedule trigger with schedule_name' },
      ]);
    const [start] = await simulateStarts(deps, [row], deliveryTo(target, team, body, found));
    return start ?? notFound('automation');
  });
}
