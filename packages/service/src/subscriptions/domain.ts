import type { Settings } from '@runyard/contract/settings';
import type { Logger } from 'pino';
import type { Domain, RowRule } from '../domain.ts';
import { systemNames } from '../names/resolver.ts';
import type { Vault } from '../secrets/vault.ts';
import type { Database } from '../store/database/database.ts';
import { makeAddressRules } from './addresses.ts';
import { type Deliverer, openDeliverer } from './deliverer.ts';
import { countUnreadableSecrets } from './subscriptions.ts';

interface SubscriptionDeps {
  readonly db: Database;
  readonly log: Logger;
  readonly vault: Vault;
  readonly settings: Pick<Settings, 'RUNYARD_ALLOW_PRIVATE_NETWORKS'>;
  baseUrl(): string;
}

/** Deliveries with their attempts, delivered or not. The ids sort by time, so the primary key finds the old ones. */
const oldDeliveries: RowRule = {
  table: 'event_deliveries',
  isOver: `id < (lpad(to_hex((extract(epoch FROM now() - interval '14 days') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`,
};

export function subscriptionsDomain(deps: SubscriptionDeps): Domain {
  let deliverer: Deliverer | undefined;
  return {
    name: 'subscriptions',
    retention: { rows: [oldDeliveries] },
    open: async () => {
      const unreadable = await countUnreadableSecrets(deps.db, deps.vault);
      if (unreadable === 0) return;
      deps.log.warn(
        { subscriptions: unreadable },
        'secrets of event subscriptions were sealed with another key: set RUNYARD_SECRETS_KEY, or rotate them',
      );
    },
    // Only now: the payloads contain the address of the service.
    loops: async () => {
      const { db, log, vault, settings, baseUrl } = deps;
      const rules = makeAddressRules(settings.RUNYARD_ALLOW_PRIVATE_NETWORKS);
      const opened = await openDeliverer({
        db,
        log,
        vault,
        rules,
        resolve: systemNames.resolve,
        baseUrl,
        random: Math.random,
      });
      deliverer = opened;
      return [{ name: 'delivering events', everyMs: 1_000, work: () => opened.deliver() }];
    },
    close: async () => await deliverer?.close(),
  };
}
