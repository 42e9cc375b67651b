/**
 * Sends deliveries that are due. Any number of processes may do this, and each delivery is sent at least once. All attempts of a delivery
 * have the same webhook-id.
 */

import type { EventPayload } from '@runyard/contract/team/event-subscriptions';
import type { AddressRules } from '@runyard/system/address-rules';
import { backoffMs, retryAfterMs } from '@runyard/system/backoff';
import type { Logger } from 'pino';
import { Webhook } from 'standardwebhooks';
import type { Resolve } from '../../platform/check-address.ts';
import { count, observe } from '../../platform/metrics/record.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import { oneAtATime } from '../../platform/serving/one-at-a-time.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { Channels } from './channels.ts';
import { type ClaimedDelivery, claimDeliveries } from './claim.ts';
import { deliveryChannel } from './enqueue.ts';
import { recordAttempt, releaseDelivery } from './record.ts';
import { sealPurpose } from './secret.ts';
import { type SendOutcome, send } from './send.ts';

export interface DelivererDeps {
  readonly db: Database;
  readonly log: Logger;
  readonly vault: Vault;
  readonly rules: AddressRules;
  readonly resolve: Resolve;
  /** Origin (scheme, host and port) of the links in payloads. */
  baseUrl(): string;
  readonly random: () => number;
  readonly channels: Channels;
}

export interface DelivererLimits {
  /** Maximum number of concurrent attempts of this process. */
  readonly atOnce: number;
  /** Maximum number of concurrent attempts for one subscription. */
  readonly perSubscription: number;
  /** Maximum number of concurrent attempts for one team. */
  readonly perTeam: number;
  readonly timeoutMs: number;
  /** When the service stops, attempts in progress have this time to end. */
  readonly stopGraceMs: number;
}

export const defaultLimits: DelivererLimits = {
  atOnce: 32,
  perSubscription: 4,
  perTeam: 24,
  timeoutMs: 10_000,
  stopGraceMs: 1_000,
};

export interface Deliverer {
  /** Begins attempts of due deliveries, within the limits. Call this function regularly, because no notice says that a retry is due. */
  deliver(): Promise<void>;
  /** Begins no further attempts. If an attempt does not end in time, other processes may send its delivery at once. */
  close(): Promise<void>;
}

function payloadOf(delivery: ClaimedDelivery, baseUrl: string): EventPayload {
  const { run_id } = delivery.data;
  if (delivery.event === 'notice') throw new Error('a notice is only for a channel');
  return {
    type: delivery.event,
    timestamp: delivery.occurred_at,
    data: {
      ...delivery.data,
      subscription_id: delivery.subscription_id,
      ...(typeof run_id === 'string' ? { session_link: `${baseUrl}/runs/${run_id}` } : {}),
    },
  };
}

/** Waits between attempts: 5 s, 20 s, 80 s, 5 min, 21 min, 85 min, and then 4 h each time. That makes about twelve attempts in 24 h. */
const attemptBackoff = { firstMs: 5_000, factor: 4, longestMs: 4 * 3_600_000 };

/** Returns the signing secrets; null if one was encrypted with another key, or was changed. */
function openSecrets(vault: Vault, delivery: ClaimedDelivery): string[] | null {
  const purpose = sealPurpose(delivery.subscription_id);
  const sealed = [delivery.sealed_secret, delivery.previous_sealed_secret].filter((each) => each !== null);
  try {
    return sealed.map((each) => vault.open(purpose, each));
  } catch {
    return null;
  }
}

function errorOf(outcome: SendOutcome): string | null {
  if (outcome.kind === 'failed') return outcome.error;
  const { status } = outcome;
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400
    ? `it answered ${status}: redirects are not followed, so change the URL to the target of the redirect`
    : `it answered ${status}`;
}

/** Creates the deliverer. It also begins attempts when a notice says that there are new deliveries. */
export async function openDeliverer(deps: DelivererDeps, limits: DelivererLimits = defaultLimits): Promise<Deliverer> {
  const { db, vault, log } = deps;
  const underWay = new Map<ClaimedDelivery, Promise<void>>();
  const stopping = new AbortController();

  const post = async (delivery: ClaimedDelivery): Promise<SendOutcome> => {
    if (delivery.channel !== null) return await deps.channels[delivery.channel](delivery);
    const secrets = openSecrets(vault, delivery);
    if (!secrets) return { kind: 'failed', error: 'the stored secret cannot be read: rotate it' };
    const body = JSON.stringify(payloadOf(delivery, deps.baseUrl()));
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'Runyard-Webhooks/1',
      ...signatureHeaders(delivery.id, new Date(), body, secrets),
    };
    const { timeoutMs } = limits;
    return await send({ url: delivery.url, body, headers }, { ...deps, timeoutMs, signal: stopping.signal });
  };

  const attempt = async (delivery: ClaimedDelivery): Promise<void> => {
    const started = performance.now();
    const outcome = await post(delivery);
    if (outcome.kind === 'failed' && stopping.signal.aborted) {
      return await releaseDelivery(db, delivery.id, delivery.attempts);
    }
    const error = errorOf(outcome);
    const durationMs = performance.now() - started;
    const httpStatus = outcome.kind === 'answered' ? outcome.status : null;
    const waits = outcome.kind === 'answered' && [429, 503].includes(outcome.status) ? outcome.retryAfter : undefined;
    const result = error === null ? 'delivered' : httpStatus === 410 ? 'gone' : 'failed';
    count('runyard_subscription_attempts_total', { result });
    observe('runyard_subscription_attempt_duration_seconds', {}, durationMs / 1_000);
    const recorded = await recordAttempt(db, {
      deliveryId: delivery.id,
      url: delivery.url,
      number: delivery.attempts,
      result,
      httpStatus,
      error,
      durationMs,
      delayMs: Math.max(
        backoffMs(attemptBackoff, delivery.round_attempts, deps.random),
        retryAfterMs(waits ?? undefined) ?? 0,
      ),
    });
    log.debug({ delivery_id: delivery.id, http_status: httpStatus, error, recorded }, 'delivery attempted');
  };

  /** Claims as many deliveries as the limit of attempts still allows, and begins the attempts. */
  const claims = oneAtATime(async () => {
    const atMost = limits.atOnce - underWay.size;
    if (atMost <= 0) return;
    const { perSubscription, perTeam } = limits;
    const claimed = await claimDeliveries(db, {
      vaultKeyIds: vault.keyIds,
      underWay: underWay.keys(),
      perSubscription,
      perTeam,
      atMost,
    });
    for (const delivery of claimed) {
      const done = attempt(delivery)
        .catch((error: unknown) => log.error({ err: error, delivery_id: delivery.id }, 'a delivery could not be made'))
        .then(() => {
          underWay.delete(delivery);
          // An attempt has ended, so another delivery can be claimed.
          wake();
        });
      underWay.set(delivery, done);
    }
  });
  const wake = (): void => {
    claims.run().catch((error: unknown) => log.error({ err: error }, 'deliveries could not be claimed'));
  };
  const unlisten = await db.listen(deliveryChannel, wake, wake);

  return {
    deliver: claims.run,
    close: async () => {
      unlisten();
      await claims.stop().catch(() => undefined);
      const timer = setTimeout(() => stopping.abort(), limits.stopGraceMs);
      await Promise.all(underWay.values());
      clearTimeout(timer);
    },
  };
}

/**
 * Returns the signature headers of one attempt. `secrets` are the current secret and, for 24 h after a rotation, the previous one.
 * A receiver accepts the delivery if one of the signatures is valid.
 */
function signatureHeaders(id: string, sentAt: Date, body: string, secrets: readonly string[]): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, sentAt, body)).join(' '),
  };
}
