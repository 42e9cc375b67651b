import type { Settings } from '@runyard/contract/settings/settings';
import type { Domain } from '../../platform/domain.ts';
import { searchByName } from '../../platform/search.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import { boolean, text } from '../../platform/store/database/statement.ts';
import { sealedWebhooks } from './ingest/secrets.ts';
import { deliveriesOfNoWebhook, oldDeliveries, trimPayloads } from './log/retention.ts';
import { webhookRoutes } from './routes.ts';

type WebhookDomainDeps = Parameters<typeof webhookRoutes>[0] & {
  readonly settings: Pick<Settings, 'RUNYARD_WEBHOOK_PAYLOADS_MB'>;
};

const mb = 1024 * 1024;

/** Finds the webhooks of all factories of the team. */
export const webhookSearch = searchByName({
  kind: 'webhook',
  statement: 'search_webhooks',
  from: 'FROM webhooks WHERE team_id = $4',
  uid: 'uid',
  name: 'name',
  changedAt: 'updated_at',
  more: { enabled: boolean, factory_uid: text() },
  toThing: (found) => ({ ...found, path: `/factories/${found.factory_uid}/webhooks/${found.uid}` }),
});

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
