/** Secrets of the team that webhooks use. */

import type { SignatureSchemeName, WebhookAuthMode } from '@runyard/contract/webhooks/webhooks';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';
import { secretFault } from './secret.ts';

const readUsers = defineStatement({
  name: 'read_webhooks_of_secret',
  text: `
    SELECT w.name, w.auth_mode, w.signature_scheme FROM webhooks w JOIN stored_secrets s ON s.id = w.team_secret_id
    WHERE s.team_id = $1 AND s.owner_uid IS NULL AND s.name = $2 ORDER BY w.uid`,
  row: { name: text(), auth_mode: text<WebhookAuthMode>(), signature_scheme: nullable(text<SignatureSchemeName>()) },
});

/** Returns why a secret of the team cannot have the value: a webhook that uses it needs another form. Null: it can. */
export async function faultOfWebhookSecret(
  db: Queryable,
  teamId: string,
  name: string,
  value: string,
): Promise<string | null> {
  for (const webhook of await db.query(readUsers, [teamId, name])) {
    const { auth_mode, signature_scheme: scheme } = webhook;
    const fault = secretFault({ auth_mode, ...(scheme === null ? {} : { signature_scheme: scheme }) }, value);
    if (fault !== null) return `${fault}: the webhook ${JSON.stringify(webhook.name)} uses it as ${auth_mode}`;
  }
  return null;
}
