import { setImmediate } from 'node:timers/promises';
import type {
  TestFilterDeliveriesRequest,
  TestFilterDeliveriesResponse,
  TestFilterRequest,
  TestFilterResponse,
} from '@runyard/contract/automations/automations';
import { parsePayloadFilter } from '@runyard/contract/automations/payload-filter/parse';
import type { PayloadFilter } from '@runyard/contract/automations/payload-filter/plan';
import { schemeOf } from '@runyard/contract/webhooks/signature-schemes/schemes';
import type { z } from 'zod';
import type { Fault } from '../../platform/fault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readFactory } from '../factories/factories.ts';
import { parsePayload } from '../webhooks/ingest/read-request.ts';
import { readLastPayloads, readPayloadOfDelivery } from '../webhooks/log/deliveries.ts';
import { readWebhook } from '../webhooks/webhooks.ts';
import { failedOf } from './match.ts';
import type { Budget } from './payload-filter/evaluate.ts';
import { explainPayloadFilter } from './payload-filter/explain.ts';

/**
 * Outcome of a test. `invalid` becomes 400. `no_factory` and `no_payload` become 404. `no_payload`: the service has no stored payload
 * of the delivery.
 */
export type TestFilterOutcome =
  | { readonly kind: 'explained'; readonly explanation: z.output<typeof TestFilterResponse> }
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] }
  | { readonly kind: 'no_factory' | 'no_payload' };

function explain(filter: PayloadFilter, payload: unknown): TestFilterOutcome {
  const { would_trigger, checks } = explainPayloadFilter(filter, payload);
  return { kind: 'explained', explanation: { would_trigger, checks: [...checks] } };
}

type Invalid = Extract<TestFilterOutcome, { kind: 'invalid' }>;

function parse(filter: unknown): { readonly kind: 'parsed'; readonly filter: PayloadFilter } | Invalid {
  const parsed = parsePayloadFilter(filter);
  if (parsed.ok) return { kind: 'parsed', filter: parsed.filter };
  const faults = parsed.faults.map(({ path, reason }) => ({
    path: path ? `filter.${path}` : 'filter',
    message: reason,
  }));
  return { kind: 'invalid', faults };
}

/** Explains whether a filter matches a payload of the request or a stored delivery. */
export async function testFilter(
  db: Queryable,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  { filter, payload: own, delivery_id: id }: TestFilterRequest,
): Promise<TestFilterOutcome> {
  if (!(await readFactory(db, teamId, factoryUid))) return { kind: 'no_factory' };
  const parsed = parse(filter);
  if (parsed.kind === 'invalid') return parsed;
  if (id === undefined) return explain(parsed.filter, own);
  const stored = await readPayloadOfDelivery(db, teamId, factoryUid, id);
  const payload = stored && parsePayload(stored.bytes, schemeOf(stored.scheme));
  return payload?.ok ? explain(parsed.filter, payload.value) : { kind: 'no_payload' };
}

/** The limits of one test on stored deliveries: bytes of all payloads, and comparisons. */
const maxTestedBytes = 8 * 1024 * 1024;
const maxComparisonsOfTest = 2_000_000;

/** Outcome of a test on stored deliveries. `invalid`: 400. `no_webhook`: 404. */
export type TestDeliveriesOutcome =
  | { readonly kind: 'tested'; readonly response: z.output<typeof TestFilterDeliveriesResponse> }
  | Invalid
  | { readonly kind: 'no_webhook' };

/** Explains for each of the last stored deliveries of a webhook whether a filter matches it. */
export async function testFilterOnDeliveries(
  db: Queryable,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  { filter, webhook_uid: webhookUid, limit }: TestFilterDeliveriesRequest,
): Promise<TestDeliveriesOutcome> {
  const webhook = await readWebhook(db, { teamId, factoryUid, webhookUid });
  if (!webhook) return { kind: 'no_webhook' };
  const parsed = parse(filter);
  if (parsed.kind === 'invalid') return parsed;
  const stored = await readLastPayloads(db, webhook.uid, { count: limit, maxBytes: maxTestedBytes });
  const total: Budget = { left: maxComparisonsOfTest };
  const deliveries: TestFilterDeliveriesResponse['deliveries'] = [];
  for (const { id, received_at, provider_event: event, payload } of stored) {
    const body = parsePayload(payload, schemeOf(webhook.signature_scheme));
    if (!body.ok) continue;
    const { would_trigger, checks } = explainPayloadFilter(parsed.filter, body.value, total);
    if (total.left <= 0) break;
    deliveries.push({
      delivery_id: id,
      received_at,
      ...(event === null ? {} : { event }),
      would_trigger,
      checks: would_trigger ? [] : failedOf(checks),
    });
    // Let the process handle other requests between two payloads.
    await setImmediate();
  }
  const matched = deliveries.filter(({ would_trigger: matches }) => matches).length;
  return { kind: 'tested', response: { compared: deliveries.length, matched, deliveries } };
}
