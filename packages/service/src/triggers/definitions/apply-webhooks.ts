/** Changes the webhooks of a factory to match their definition. */

import { pathOf } from '@runyard/contract/factories/files/layout';
import type { CreateWebhookRequest } from '@runyard/contract/webhooks/webhooks';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { Author } from '../../team/access/audit/record.ts';
import { updateWebhook } from '../webhooks/change.ts';
import { secretFault } from '../webhooks/ingest/secrets.ts';
import { type BadSecret, createWebhook, deleteWebhook, type StoredWebhook } from '../webhooks/webhooks.ts';
import type { FaultList } from './fault-list.ts';
import { differencesOfWebhook, type FactoryAddress, type FactoryState, type TeamSecret, uidOf } from './state.ts';
import { rulesOfFile } from './webhook-rules.ts';

/** The arguments of `applyWebhooks`. `uids`: the UIDs of the webhooks of the previous definition, by name. */
export interface WebhooksToApply {
  readonly factory: FactoryAddress;
  readonly definition: FactoryDefinition;
  readonly state: FactoryState;
  readonly uids: Readonly<Record<string, string>>;
  readonly secrets: ReadonlyMap<string, TeamSecret>;
}

/** Adds a fault for each secret that is missing or does not fit its webhook. */
export function checkWebhookSecrets({ definition, secrets }: WebhooksToApply, faults: FaultList): void {
  for (const { name, authMode, signatureScheme, secretName } of definition.webhooks) {
    const file = pathOf.webhook(name);
    const secret = secrets.get(secretName) ?? { problem: `there is no secret ${secretName}` };
    const message =
      'problem' in secret
        ? secret.problem
        : secretFault(
            { auth_mode: authMode, ...(signatureScheme ? { signature_scheme: signatureScheme } : {}) },
            secret.value,
          );
    if (message !== null)
      faults.add(
        file,
        ['secretName'],
        'problem' in secret ? message : `the value of the secret ${secretName} ${message}`,
      );
  }
}

/** Adds a fault for each change of a webhook that is only possible with a new webhook. */
export function checkWebhookModes(
  { definition, state, uids }: Omit<WebhooksToApply, 'secrets'>,
  faults: FaultList,
): void {
  for (const { name, authMode, signatureScheme } of definition.webhooks) {
    const file = pathOf.webhook(name);
    const present = state.webhooks.get(uidOf(uids, name));
    if (present && (present.auth_mode !== authMode || present.signature_scheme !== signatureScheme))
      faults.add(
        file,
        [present.auth_mode === authMode ? 'signatureScheme' : 'authMode'],
        'cannot change: senders of the webhook would be refused. Define a webhook with another name and secret',
      );
  }
}

/** Adds a fault for each automation that selects a webhook which the factory will not have after the definition was applied. */
export function checkWebhookIds(
  { definition, state, uids }: Omit<WebhooksToApply, 'secrets'>,
  faults: FaultList,
): void {
  const goes = new Set(namesOfDeleted(uids, definition.webhooks).map((name) => uidOf(uids, name)));
  for (const { name, triggers } of definition.automations)
    for (const [index, trigger] of triggers.entries()) {
      const ids: unknown = trigger.provider === 'webhook' && 'filter' in trigger && trigger.filter?.webhook_ids;
      if (!Array.isArray(ids)) continue;
      for (const [position, uid] of ids.entries())
        if (!state.webhooks.has(uid) || goes.has(uid))
          faults.add(
            pathOf.automation(name),
            ['triggers', index, 'filter', 'webhook_ids', position],
            goes.has(uid)
              ? `the webhook ${uid} is deleted by this definition`
              : `the factory has no webhook ${uid}; GET /factory/{uid}/webhooks lists them. Name a webhook of the definition by its file, with webhooks: [name]`,
          );
    }
}

/** Returns the names that the previous definition had and the new definition does not have. */
export const namesOfDeleted = (
  uids: Readonly<Record<string, string>>,
  defined: readonly { readonly name: string }[],
): string[] => Object.keys(uids).filter((name) => !defined.some((each) => each.name === name));

/**
 * Creates, changes and deletes webhooks, and returns their UIDs by name. The caller has checked the webhooks with `checkWebhooks`. If
 * this adds faults, the caller rolls the transaction back.
 */
export async function applyWebhooks(
  tx: Queryable,
  vault: Vault,
  by: Author,
  { factory, definition, state, uids, secrets }: WebhooksToApply,
  faults: FaultList,
): Promise<Record<string, string>> {
  for (const name of namesOfDeleted(uids, definition.webhooks))
    await deleteWebhook(tx, by, { ...factory, webhookUid: uidOf(uids, name) });
  const applied: [string, string][] = [];
  for (const webhook of definition.webhooks) {
    const found = secrets.get(webhook.secretName);
    if (!found || 'problem' in found) throw new Error(`the secret of the webhook ${webhook.name} was not checked`);
    const { value: secret } = found;
    const present = state.webhooks.get(uidOf(uids, webhook.name));
    const members = {
      name: webhook.name,
      secret_name: webhook.secretName,
      enabled: webhook.enabled,
    };
    if (!present) {
      const request: CreateWebhookRequest = {
        ...members,
        auth_mode: webhook.authMode,
        secret,
        ...(webhook.signatureScheme ? { signature_scheme: webhook.signatureScheme } : {}),
        ...(webhook.deliveryIdHeader ? { delivery_id_header: webhook.deliveryIdHeader } : {}),
        ...rulesOfFile(webhook),
      };
      const made = await createWebhook(tx, vault, by, factory.factoryUid, request);
      if (typeof made === 'string')
        faults.add(pathOf.webhook(webhook.name), [], 'the factory would have too many webhooks; delete others first');
      else if ('kind' in made) faults.add(pathOf.webhook(webhook.name), ['secretName'], made.fault.message);
      else applied.push([webhook.name, made.webhook.uid]);
      continue;
    }
    applied.push([webhook.name, present.uid]);
    const address = { ...factory, webhookUid: present.uid };
    if (differencesOfWebhook(present, state, webhook, found).length === 0) continue;
    // The request has the name of the team's secret and not the value, so a later change of the value takes effect at once.
    const request = {
      ...members,
      delivery_id_header: webhook.deliveryIdHeader ?? null,
      ...{ delivery_id_path: null, event_header: null, duplicate_window_seconds: null },
      ...rulesOfFile(webhook),
    };
    const updated = await updateWebhook(tx, vault, by, address, request);
    if (updated === null) throw new Error('the webhook is gone, although it is locked');
    const fault = updated === 'no_secret' ? `the secret ${webhook.secretName} was deleted meanwhile` : faultOf(updated);
    if (fault !== null) faults.add(pathOf.webhook(webhook.name), ['secretName'], fault);
  }
  return Object.fromEntries(applied);
}

const faultOf = (updated: StoredWebhook | BadSecret): string | null =>
  'kind' in updated ? updated.fault.message : null;
