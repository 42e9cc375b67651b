import type { TestFilterRequest, TestFilterResponse } from '@runyard/contract/automations/automations';
import { parsePayloadFilter } from '@runyard/contract/automations/payload-filter/parse';
import type { PayloadFilter } from '@runyard/contract/automations/payload-filter/plan';
import { schemeOf } from '@runyard/contract/webhooks/signature-schemes/schemes';
import type { z } from 'zod';
import type { Fault } from '../../platform/fault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readFactory } from '../factories/factories.ts';
import { parsePayload } from '../webhooks/ingest/read-request.ts';
import { readPayloadOfDelivery } from '../webhooks/log/deliveries.ts';
import { explainPayloadFilter } from './payload-filter/explain.ts';

/** Outcome of a test. `invalid`: 400. `no_factory` and `no_payload`, of a delivery: 404. */
export type TestFilterOutcome =
  | { readonly kind: 'explained'; readonly explanation: z.output<typeof TestFilterResponse> }
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] }
  | { readonly kind: 'no_factory' | 'no_payload' };

function explain(filter: PayloadFilter, payload: unknown): TestFilterOutcome {
  const { would_trigger, checks } = explainPayloadFilter(filter, payload);
  return { kind: 'explained', explanation: { would_trigger, checks: [...checks] } };
}

/** Explains what a filter decides about a payload, or about that of a delivery. */
export async function testFilter(
  db: Queryable,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  { filter, payload: own, delivery_id: id }: TestFilterRequest,
): Promise<TestFilterOutcome> {
  if (!(await readFactory(db, teamId, factoryUid))) return { kind: 'no_factory' };
  const parsed = parsePayloadFilter(filter);
  if (!parsed.ok) {
    const faults = parsed.faults.map(({ path, reason }) => ({
      path: path ? `filter.${path}` : 'filter',
      message: reason,
    }));
    return { kind: 'invalid', faults };
  }
  if (id === undefined) return explain(parsed.filter, own);
  const stored = await readPayloadOfDelivery(db, teamId, factoryUid, id);
  const payload = stored && parsePayload(stored.bytes, schemeOf(stored.scheme));
  return payload?.ok ? explain(parsed.filter, payload.value) : { kind: 'no_payload' };
}
