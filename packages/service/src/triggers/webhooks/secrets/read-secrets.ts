import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { purposeOfSecret } from '../../../team/stored-secrets/seal-purpose.ts';
import { openWebhookSecret } from './secret.ts';

const readSealed = defineStatement({
  name: 'read_sealed_secrets_of_webhooks',
  text: `
    SELECT w.uid, w.sealed_secret, s.id AS team_secret_id, s.sealed_value FROM webhooks w
    LEFT JOIN stored_secrets s ON s.id = w.team_secret_id WHERE w.team_id = $1 AND w.factory_uid = $2`,
  row: { uid: text(), sealed_secret: nullable(bytes), team_secret_id: nullable(uuid), sealed_value: nullable(bytes) },
});

type Row = RowOf<typeof readSealed>;

/** Returns the secrets of the webhooks of a factory, by UID; null: it has none, or none that can be decrypted. */
export async function readWebhookSecrets(
  db: Queryable,
  vault: Vault,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
): Promise<ReadonlyMap<string, string | null>> {
  const open = ({ uid, sealed_secret: own, team_secret_id: id, sealed_value: ofTeam }: Row): string | null => {
    try {
      if (id !== null && ofTeam !== null) return vault.open(purposeOfSecret(id), ofTeam);
      return own && openWebhookSecret(vault, uid, own);
    } catch {
      return null;
    }
  };
  const rows = await db.query(readSealed, [teamId, factoryUid]);
  return new Map(rows.map((row) => [row.uid, open(row)]));
}
