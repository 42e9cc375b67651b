/** Writes deliveries that may start runs, together with what they start. */
import type { Transaction } from '../../../platform/store/database/transaction.ts';
import { noticePushes } from '../../definitions/source/pushes.ts';
import type { AcceptedDelivery } from '../../webhooks/ingest/accepted-delivery.ts';
import { makeDeliveryRows, type TakenDelivery } from '../../webhooks/ingest/delivery-rows.ts';
import type { KnownWebhook } from '../../webhooks/ingest/directory.ts';
import { takeDeliveries } from '../../webhooks/ingest/take-deliveries.ts';
import type { CheckedDelivery, NotWritten, Written } from '../../webhooks/ingest/write-deliveries.ts';
import { explainRefusal } from '../../webhooks/ingest/write-rejection.ts';
import type { StartDeliveries } from './start-deliveries.ts';

/** Writes deliveries and starts the runs of the automations that they match, in the transaction of the caller. */
export async function writeStarting(
  tx: Transaction,
  startDeliveries: StartDeliveries,
  deliveries: readonly CheckedDelivery[],
): Promise<(Written | NotWritten)[]> {
  const candidates = deliveries.filter(({ startsNothing }) => !startsNothing).map(toAccepted);
  // Their statements are sent together, and the server runs them one after the other.
  const [kinds, startAccepted] = await Promise.all([
    takeDeliveries(tx, deliveries),
    candidates.length > 0 ? startDeliveries(tx, candidates) : undefined,
  ]);
  const taken = deliveries.flatMap((delivery, index): TakenDelivery[] => {
    const kind = kinds[index];
    if (kind === 'ACCEPTED') return [{ delivery, label: kind, reason: delivery.reason ?? null }];
    return typeof kind === 'object' ? [{ delivery, ...kind }] : [];
  });
  const { rows, writeRest } = makeDeliveryRows(taken);
  const starting = taken.flatMap(({ delivery, label }) =>
    label === 'ACCEPTED' && !delivery.startsNothing ? [delivery] : [],
  );
  const accepted = starting.map(toAccepted);
  const reached = startAccepted && accepted.length > 0 ? await startAccepted(accepted, rows) : [];
  noticePushes(tx, accepted);
  for (const [index, { webhook }] of starting.entries()) webhook.hints.feedsAutomations = reached[index] ?? false;
  writeRest(tx);
  const refusals = new Map<KnownWebhook, NotWritten>();
  for (const [index, { webhook }] of deliveries.entries())
    if (kinds[index] === 'full' && !refusals.has(webhook))
      refusals.set(webhook, await explainRefusal(tx, webhook, 'delivery'));
  return deliveries.map(({ webhook }, index) => {
    if (kinds[index] === 'ACCEPTED') return { kind: 'accepted' };
    if (typeof kinds[index] === 'object') return { kind: 'duplicate' };
    return (kinds[index] === 'full' ? refusals.get(webhook) : undefined) ?? { kind: 'changed' };
  });
}

const toAccepted = ({ webhook, id, body, payload, event }: CheckedDelivery): AcceptedDelivery => ({
  deliveryId: id,
  webhookUid: webhook.uid,
  webhookName: webhook.name,
  factoryUid: webhook.factoryUid,
  teamId: webhook.teamId,
  scheme: webhook.scheme,
  event,
  body,
  payload,
});
