import type { Settings } from '@runyard/contract/settings/settings';
import type { Domain } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import { sealedWebhooks } from './ingest/secrets.ts';
import { deliveriesOfNoWebhook, oldDeliveries, trimPayloads } from './log/retention.ts';
import { webhookRoutes } from './routes.ts';
import { webhookSearch } from './search.ts';

type WebhookDomainDeps = Parameters<typeof webhookRoutes>[0] & {
  readonly settings: Pick<Settings, 'RUNYARD_WEBHOOK_PAYLOADS_MB'>;
};

const mb = 1024 * 1024;

export const webhooksDomain = (deps: WebhookDomainDeps): Domain => ({
  name: 'webhooks',
  search: [webhookSearch],
  routes: () => webhookRoutes(deps),
  retention: { rows: [oldDeliveries, deliveriesOfNoWebhook] },
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedWebhooks),
  loops: async () => [
    {
      name: 'deleting old payloads of large webhook logs',
      everyMs: 60_000,
      work: () => trimPayloads(deps.db, deps.settings.RUNYARD_WEBHOOK_PAYLOADS_MB * mb),
    },
  ],
});
