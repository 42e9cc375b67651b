/** Secrets of the team that webhooks use. */

import type { SignatureSchemeName, WebhookAuthMode } from '@runyard/contract/webhooks';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';
import { findUsableSecrets } from '../../../team/stored-secrets/find-usable.ts';
import { secretFault } from './secret.ts';

/** A secret of the team that can be decrypted. */
export interface TeamSecret {
  readonly id: string;
  readonly value: string;
}

/** Finds a secret of the team. `unreadable`: it was encrypted with a key that this service does not have. Null: there is none. */
export async function findTeamSecret(
  db: Queryable,
  vault: Vault,
  teamId: string,
  name: string,
): Promise<TeamSecret | 'unreadable' | null> {
  // The actor matters only for personal secrets.
  const actor = { kind: 'user', uid: '' } as const;
  const found = await findUsableSecrets(db, vault, { teamId, actor }, { ofRun: [], ofEnvironment: [{ name }] });
  if (found.kind === 'ok') return found.secrets[0] ?? null;
  return found.kind === 'unreadable' ? 'unreadable' : null;
}

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
