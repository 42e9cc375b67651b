import { faultOfProof } from '@runyard/contract/webhooks/webhook-rules';
import type { CreateWebhookRequest, RotateWebhookSecretRequest } from '@runyard/contract/webhooks/webhooks';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { rotateWebhookSecret } from './change.ts';
import { isMadeByProvider, secretFault } from './ingest/secrets.ts';
import { readWebhook, type SealedWebhook, type WebhookAddress } from './webhooks.ts';

/**
 * Returns the fault of a request to create a webhook, if its authentication mode, signature scheme and secret do not fit together.
 * Returns null if they fit.
 */
export function faultOfCreate({ auth_mode, signature_scheme, signature, secret }: CreateWebhookRequest): Fault | null {
  const proof = { mode: auth_mode, scheme: signature_scheme, hasSignature: signature !== undefined };
  const fault = faultOfProof(proof);
  if (fault) return { path: fault.member === 'scheme' ? 'signature_scheme' : 'signature', message: fault.message };
  const message = secret === undefined ? null : secretFault({ auth_mode, signature_scheme }, secret);
  return message === null ? null : { path: 'secret', message };
}

/**
 * Outcome of replacing a secret. `not_found` becomes 404, `invalid` 400. `of_team` becomes 409: the webhook uses the team's secret
 * with this name.
 */
export type RotateOutcome =
  | { readonly kind: 'rotated'; readonly sealed: SealedWebhook }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'invalid'; readonly fault: Fault }
  | { readonly kind: 'of_team'; readonly name: string | undefined };

/**
 * Replaces the secret of a webhook by the secret in the request. Without a secret in the request, makes a new secret, unless the provider
 * makes the secrets of this webhook.
 */
export async function rotateSecret(
  { db, vault }: { readonly db: Database; readonly vault: Vault },
  by: Principal,
  address: WebhookAddress,
  { secret, grace_seconds: graceSeconds }: RotateWebhookSecretRequest,
): Promise<RotateOutcome> {
  const webhook = await readWebhook(db, address);
  if (!webhook) return { kind: 'not_found' };
  if (webhook.secret_of_team) return { kind: 'of_team', name: webhook.secret_name };
  if (secret === undefined && isMadeByProvider(webhook)) {
    const message = 'is required: the provider makes the secret of this webhook';
    return { kind: 'invalid', fault: { path: 'secret', message } };
  }
  const message = secret === undefined ? null : secretFault(webhook, secret);
  if (message !== null) return { kind: 'invalid', fault: { path: 'secret', message } };
  const sealed = await db.transaction((tx) =>
    rotateWebhookSecret(tx, vault, by, address, { webhook, secret, graceSeconds }),
  );
  return sealed ? { kind: 'rotated', sealed } : { kind: 'not_found' };
}
