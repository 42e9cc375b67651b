import { randomUUIDv7 } from 'node:crypto';
import type { WebhookDelivery } from '@runyard/contract/webhooks/webhooks';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { withinTransaction } from '../../../platform/store/database/transaction.ts';
import type { SubmitDeps } from '../../../runs/runs/submit/prepare.ts';
import { type Author, recordChange } from '../../../team/access/audit/record.ts';
import type { WebhookDirectory } from '../../webhooks/ingest/directory.ts';
import { identityOfReplay, parsePayload } from '../../webhooks/ingest/read-request.ts';
import { readWebhookDelivery } from '../../webhooks/log/deliveries.ts';
import { writeDelivery } from './start-deliveries.ts';

/** `no_payload`: the delivery was not accepted, or its payload is no longer stored. `disabled`: the webhook accepts no deliveries. */
export type ReplayOutcome =
  | { readonly kind: 'replayed'; readonly delivery: WebhookDelivery }
  | { readonly kind: 'not_found' | 'no_payload' | 'disabled' }
  | { readonly kind: 'rate_limited'; readonly retryAfterMs: number };

export interface ReplayDeps extends SubmitDeps {
  readonly webhooks: WebhookDirectory;
}

/**
 * Creates a new delivery with the payload of a stored one, in the transaction of the caller. The new delivery must pass all checks
 * except authentication.
 */
export async function replayDelivery(
  tx: Queryable,
  deps: ReplayDeps,
  by: Author,
  webhookUid: string,
  deliveryId: string,
): Promise<ReplayOutcome> {
  const original = await readWebhookDelivery(tx, webhookUid, deliveryId);
  if (!original) return { kind: 'not_found' };
  if (!original.payload) return { kind: 'no_payload' };
  // Another process may have changed the webhook since this process read it. In this case, the second attempt reads the webhook again.
  for (const _ of ['known', 'read again']) {
    const webhook = await deps.webhooks.find(webhookUid);
    if (!webhook) return { kind: 'disabled' };
    const payload = parsePayload(original.payload, webhook.sender);
    if (!payload.ok) return { kind: 'no_payload' };
    const id = randomUUIDv7();
    const delivery = {
      webhook,
      id,
      body: original.payload,
      payload: payload.value,
      identity: identityOfReplay(id),
      event: original.event,
      headers: original.headers,
      replayOf: deliveryId,
      // A replay by a member does not make the payload the member's text.
      sender: original.sender,
    };
    const written = await withinTransaction(tx, (part) => writeDelivery(deps, part, delivery));
    if (written.kind === 'full') return { kind: 'rate_limited', retryAfterMs: written.waitMs };
    if (written.kind === 'changed') deps.webhooks.forget(webhookUid);
    else {
      const made = await readWebhookDelivery(tx, webhookUid, id);
      if (!made) throw new Error('the replay was not written');
      const subject = { type: 'webhook_delivery', uid: deliveryId };
      await recordChange(tx, by, { action: 'webhook_delivery.replay', subject, after: { replay: id } });
      return { kind: 'replayed', delivery: made.delivery };
    }
  }
  return { kind: 'disabled' };
}
