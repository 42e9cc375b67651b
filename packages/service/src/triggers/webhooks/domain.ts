import type { Settings } from '@runyard/contract/settings';
import type { Domain } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { deliveriesOfNoWebhook, oldDeliveries, trimPayloads } from './log/retention.ts';
import { sealedWebhooks } from './secrets/sealed-rows.ts';

interface WebhookDomainDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly settings: Pick<Settings, 'RUNYARD_WEBHOOK_PAYLOADS_MB'>;
}

const mb = 1024 * 1024;

export const webhooksDomain = ({ db, vault, settings }: WebhookDomainDeps): Domain => ({
  name: 'webhooks',
  retention: { rows: [oldDeliveries, deliveriesOfNoWebhook] },
  sealAgain: () => sealAgain(db, vault, sealedWebhooks),
  loops: async () => [
    {
      name: 'deleting old payloads of large webhook logs',
      everyMs: 60_000,
      work: () => trimPayloads(db, settings.RUNYARD_WEBHOOK_PAYLOADS_MB * mb),
    },
  ],
});
