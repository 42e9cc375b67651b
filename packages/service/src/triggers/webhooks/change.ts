/** Changes webhooks. Each change increases the version of the webhook, so that no process accepts a delivery with outdated settings. */
import type { UpdateWebhookRequest } from '@runyard/contract/webhooks/webhooks';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import { newWebhookSecret, sealWebhookSecret } from './ingest/secrets.ts';
import {
  type BadSecret,
  badSecret,
  findFittingSecret,
  rulesOf,
  type SealedWebhook,
  type StoredWebhook,
  stateOf,
  subjectOf,
  toWebhook,
  type WebhookAddress,
  webhookColumns,
  webhookRow,
} from './webhooks.ts';

const lockOne = defineStatement({
  name: 'lock_webhook',
  text: `
    SELECT ${webhookColumns}, (sealed_secret IS NOT NULL OR team_secret_id IS NOT NULL) AS has_secret FROM webhooks
    WHERE team_id = $1 AND factory_uid = $2 AND uid = $3 FOR UPDATE`,
  row: { ...webhookRow, has_secret: boolean },
});

/** $6: id of the team's secret that the webhook uses from now on; NULL: the secret does not change. */
const update = defineStatement({
  name: 'update_webhook',
  text: `
    UPDATE webhooks SET name = $2, secret_name = $3, delivery_id_header = $4, enabled = $5,
      disabled_reason = CASE WHEN NOT $5 THEN disabled_reason END, team_secret_id = coalesce($6::uuid, team_secret_id),
      sealed_secret = CASE WHEN $6::uuid IS NULL THEN sealed_secret END,
      vault_key_id = CASE WHEN $6::uuid IS NULL THEN vault_key_id END,
      previous_sealed_secret = CASE WHEN $6::uuid IS NULL THEN previous_sealed_secret END, rules = $7,
      version = version + 1, updated_at = clock_timestamp()
    WHERE uid = $1 RETURNING ${webhookColumns}`,
  row: webhookRow,
});

/**
 * $6: seconds for which the old secret is still accepted. An old secret that was encrypted with another key than the present one is
 * not kept, because this process may not be able to decrypt it.
 */
const rotate = defineStatement({
  name: 'rotate_secret_of_webhook',
  text: `
    UPDATE webhooks SET
      previous_sealed_secret = CASE WHEN $6::float8 > 0 AND vault_key_id = $4 THEN sealed_secret END,
      previous_secret_until = CASE WHEN $6::float8 > 0 THEN clock_timestamp() + make_interval(secs => $6) END,
      vault_key_id = $4, sealed_secret = $5, team_secret_id = NULL, version = version + 1, updated_at = clock_timestamp()
    WHERE team_id = $1 AND factory_uid = $2 AND uid = $3 RETURNING ${webhookColumns}`,
  row: webhookRow,
});

/** `no_secret`: the request enables a webhook that does not have a secret yet. Null: the team has no such webhook. */
export type UpdateOutcome = StoredWebhook | BadSecret | 'no_secret' | null;

/**
 * Changes the members of a webhook that the request contains. If the request has a `secret_name` and the team has a secret of this
 * name, the webhook uses that secret from now on.
 */
export async function updateWebhook(
  tx: Queryable,
  vault: Vault,
  by: Author,
  { teamId, factoryUid, webhookUid }: WebhookAddress,
  request: UpdateWebhookRequest,
): Promise<UpdateOutcome> {
  const [old] = await tx.query(lockOne, [teamId, factoryUid, webhookUid]);
  if (!old) return null;
  const named = request.secret_name;
  const ofTeam = named === undefined ? null : await findFittingSecret(tx, vault, teamId, named, toWebhook(old));
  if (ofTeam && 'kind' in ofTeam) return ofTeam;
  if (named !== undefined && named !== old.secret_name && !ofTeam && old.team_secret_id !== null)
    return badSecret(
      'secret_name',
      `the team has no secret ${named}; set it with PUT /secrets/${named} and the scope team`,
    );
  if (request.signature !== undefined && old.signature_scheme !== 'hmac')
    return badSecret('signature', 'is only for the scheme hmac; leave it out');
  const enabled = request.enabled ?? old.enabled;
  if (enabled && !old.has_secret && !ofTeam) return 'no_secret';
  const header = request.delivery_id_header;
  const [made] = await tx.query(update, [
    webhookUid,
    request.name ?? old.name,
    request.secret_name ?? old.secret_name,
    header === undefined ? old.delivery_id_header : (header?.toLowerCase() ?? null),
    enabled,
    ofTeam?.id ?? null,
    JSON.stringify(rulesOf(old.rules, request)),
  ]);
  if (!made) return null;
  const [before, after] = [toWebhook(old), toWebhook(made)];
  await recordChange(tx, by, {
    action: 'webhook.update',
    subject: subjectOf(after),
    before: stateOf(before),
    after: stateOf(after),
    ...(before.enabled && !after.enabled ? { endsAccess: true } : {}),
  });
  return after;
}

/**
 * Sets the given secret, or a new secret if none is given. The old secret is accepted for `graceSeconds` more. Returns null if the
 * team has no such webhook. The caller has checked that the secret fits the authentication mode of the webhook, which never changes.
 */
export async function rotateWebhookSecret(
  tx: Queryable,
  vault: Vault,
  by: Author,
  { teamId, factoryUid, webhookUid }: WebhookAddress,
  { webhook, secret, graceSeconds }: { webhook: StoredWebhook; secret: string | undefined; graceSeconds: number },
): Promise<SealedWebhook | null> {
  const sealed = sealWebhookSecret(vault, webhookUid, secret ?? newWebhookSecret(webhook));
  const [made] = await tx.query(rotate, [teamId, factoryUid, webhookUid, vault.keyId, sealed, graceSeconds]);
  if (!made) return null;
  await recordChange(tx, by, { action: 'webhook.rotate_secret', subject: subjectOf(made) });
  return { webhook: toWebhook(made), sealedSecret: sealed.toString('base64') };
}
