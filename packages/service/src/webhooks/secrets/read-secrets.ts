import type { Vault } from '../../secrets/vault.ts';
import type { Queryable } from '../../store/database/database.ts';
import { bytes, defineStatement, nullable, text } from '../../store/database/statement.ts';
import { openWebhookSecret } from './secret.ts';

const readSealed = defineStatement({
  name: 'read_sealed_secrets_of_webhooks',
  text: 'SELECT uid, sealed_secret FROM webhooks WHERE team_id = $1 AND factory_uid = $2',
  row: { uid: text(), sealed_secret: nullable(bytes) },
});

/** Returns the secrets of the webhooks of a factory, by UID; null: it has none, or none that can be opened. */
export async function readWebhookSecrets(
  db: Queryable,
  vault: Vault,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
): Promise<ReadonlyMap<string, string | null>> {
  const open = (uid: string, sealed: Buffer | null): string | null => {
    try {
      return sealed && openWebhookSecret(vault, uid, sealed);
    } catch {
      return null;
    }
  };
  const rows = await db.query(readSealed, [teamId, factoryUid]);
  return new Map(rows.map(({ uid, sealed_secret }) => [uid, open(uid, sealed_secret)]));
}
