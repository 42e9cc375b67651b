import { maxWebhookBytes } from '@runyard/contract/limits';
import { schemeOf } from '@runyard/contract/webhooks/signature-schemes/schemes';
import type {
  DryRunRequest,
  SimulateDeliveryRequest,
  SimulateDeliveryResponse,
  SimulatedStart,
} from '@runyard/contract/webhooks/simulations';
import type { Fault } from '../../platform/fault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import { type AutomationRow, webhooksOf } from '../automations/automation-row.ts';
import { readAutomation } from '../automations/automations.ts';
import { readFedBy } from '../automations/match.ts';
import { readSchedulesOfAutomations } from '../schedules/of-automation.ts';
import { parsePayload } from '../webhooks/ingest/read-request.ts';
import { readPayloadOfDelivery, type StoredPayload } from '../webhooks/log/deliveries.ts';
import { listWebhooks, type StoredWebhook } from '../webhooks/webhooks.ts';
import { type SimulatedDelivery, simulateStarts, simulateTime } from './simulate.ts';

/** The id of a simulated delivery without a stored original. */
const noDeliveryId = '00000000-0000-0000-0000-000000000000';

interface Team {
  readonly teamId: string;
  readonly factoryUid: string;
}

/** Why nothing can be simulated. `invalid` becomes 400, `not_found` 404. */
export type Unsimulated =
  | { readonly kind: 'invalid'; readonly fault: Fault }
  | { readonly kind: 'not_found'; readonly what: string };

interface Payload extends Omit<StoredPayload, 'webhookUid'> {
  readonly kind: 'payload';
  /** The webhook that received the stored delivery; absent: the payload comes from the request. */
  readonly webhookUid?: string;
}

export type SimulateOutcome = { readonly kind: 'simulated'; readonly response: SimulateDeliveryResponse } | Unsimulated;

export type DryRunOutcome = { readonly kind: 'start'; readonly start: SimulatedStart } | Unsimulated;

/** Returns the payload of a request in the bytes in which a sender would send it. */
function bytesOf(payload: unknown): Buffer | Unsimulated {
  try {
    const bytes = Buffer.from(JSON.stringify(payload));
    if (bytes.length <= maxWebhookBytes) return bytes;
    return {
      kind: 'invalid',
      fault: { path: 'payload', message: `must have at most ${maxWebhookBytes} bytes as JSON` },
    };
  } catch {
    // JSON.stringify throws if the value is nested so deeply that it uses up the stack.
    return {
      kind: 'invalid',
      fault: {
        path: 'payload',
        message: 'is nested too deeply; send the payload to the webhook and name its delivery_id here',
      },
    };
  }
}

/** The webhook that receives a simulated delivery. */
interface Target extends Pick<StoredWebhook, 'uid' | 'name' | 'signature_scheme'> {
  readonly refusal?: string;
}

const targetOf = (webhook: StoredWebhook): Target =>
  webhook.enabled ? webhook : { ...webhook, refusal: 'the webhook is disabled' };

/** The target if an automation reads deliveries of GitHub, but the factory has no webhook for them. */
const noGithubWebhook: Target = {
  uid: '0'.repeat(22),
  name: 'github',
  signature_scheme: 'github',
  refusal: 'the factory has no webhook with the signature scheme github',
};

/**
 * Returns the webhook that the simulated delivery goes to: the webhook that the request names; if it names none, the first webhook
 * that a trigger selects. If this webhook was deleted, `refusal` of the result says so. Returns undefined if no webhook has the given UID, or no
 * trigger reads deliveries.
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

/** Returns the payload in a request, or reads the stored payload of the delivery that the request names. */
async function payloadOf(
  db: Queryable,
  team: Team,
  { payload, delivery_id: id, event }: SimulateDeliveryRequest,
): Promise<Payload | Unsimulated> {
  if (id !== undefined) {
    const stored = await readPayloadOfDelivery(db, team.teamId, team.factoryUid, id);
    return stored ? { kind: 'payload', ...stored } : { kind: 'not_found', what: 'delivery with a stored payload' };
  }
  const bytes = bytesOf(payload);
  return 'kind' in bytes ? bytes : { kind: 'payload', bytes, event: event ?? null };
}

function deliveryTo(
  { uid, name, signature_scheme: scheme, refusal }: Target,
  team: Team,
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

async function dryRunTime(deps: SubmitDeps, row: AutomationRow, name: string): Promise<DryRunOutcome> {
  const { db } = deps.executionDeps;
  const schedules = await readSchedulesOfAutomations(db, [row.uid]);
  const schedule = schedules.find(({ trigger_name: each }) => each === name);
  if (schedule) return { kind: 'start', start: await simulateTime(deps, row, schedule) };
  // Sort the names, because schedules that were created in the same millisecond have no defined order.
  const names = schedules
    .map(({ trigger_name: each }) => JSON.stringify(each))
    .toSorted()
    .join(', ');
  const message = `is no schedule trigger of the automation; it has ${names || 'none'}`;
  return { kind: 'invalid', fault: { path: 'schedule_name', message } };
}

/** Returns which automations a delivery to a webhook would start. Nothing is created. */
export async function simulateDelivery(
  deps: SubmitDeps,
  team: Team,
  webhookUid: string,
  request: SimulateDeliveryRequest,
): Promise<SimulateOutcome> {
  const { db } = deps.executionDeps;
  const webhook = (await listWebhooks(db, team.teamId, team.factoryUid)).find(({ uid }) => uid === webhookUid);
  if (!webhook) return { kind: 'not_found', what: 'webhook' };
  const found = await payloadOf(db, team, request);
  if (found.kind !== 'payload') return found;
  if (found.webhookUid !== undefined && found.webhookUid !== webhook.uid)
    return { kind: 'not_found', what: 'delivery with a stored payload' };
  const delivery = deliveryTo(targetOf(webhook), team, request, found);
  const fed = await readFedBy(db, [delivery]);
  const automations = await simulateStarts(deps, fed, delivery);
  return { kind: 'simulated', response: { would_accept: webhook.enabled, automations } };
}

/** Returns the run that an automation would start for a delivery, or at a time of one of its schedule triggers. Nothing is created. */
export async function dryRunAutomation(
  deps: SubmitDeps,
  team: Team,
  automationUid: string,
  request: DryRunRequest,
): Promise<DryRunOutcome> {
  const { db } = deps.executionDeps;
  const row = await readAutomation(db, { ...team, automationUid });
  if (!row) return { kind: 'not_found', what: 'automation' };
  if (request.schedule_name !== undefined) return await dryRunTime(deps, row, request.schedule_name);
  const found = await payloadOf(db, team, request);
  if (found.kind !== 'payload') return found;
  const named = found.webhookUid ?? request.webhook_uid;
  if (found.webhookUid !== undefined && (request.webhook_uid ?? found.webhookUid) !== found.webhookUid) {
    const message = 'is the webhook of another delivery; leave it out';
    return { kind: 'invalid', fault: { path: 'webhook_uid', message } };
  }
  const webhooks = await listWebhooks(db, team.teamId, team.factoryUid);
  const target = findTarget(row, webhooks, named, found.event);
  if (!target && named !== undefined) return { kind: 'not_found', what: 'webhook' };
  if (!target) {
    const message = 'no trigger accepts deliveries; simulate a schedule trigger with schedule_name';
    return { kind: 'invalid', fault: { path: 'payload', message } };
  }
  const [start] = await simulateStarts(deps, [row], deliveryTo(target, team, request, found));
  return start ? { kind: 'start', start } : { kind: 'not_found', what: 'automation' };
}
