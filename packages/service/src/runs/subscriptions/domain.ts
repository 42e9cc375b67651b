import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import { makeAddressRules } from '@runyard/system/address-rules';
import { systemNames } from '@runyard/system/names/resolver';
import type { Logger } from 'pino';
import type { Domain, RowRule } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import { secretsKeyFile, type Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { idAt } from '../../platform/store/database/uuid.ts';
import type { Channels } from './channels.ts';
import { dueDeliveries, measureDueDeliveries } from './claim.ts';
import { type Deliverer, openDeliverer } from './deliverer.ts';
import { subscriptionRoutes } from './routes.ts';
import { sealedSubscriptions } from './secret.ts';
import { findKeyProblemOfSubscriptions, settleUnsigned, unsignedDeliveries } from './unsigned.ts';

interface SubscriptionDeps {
  readonly db: Database;
  readonly log: Logger;
  readonly vault: Vault;
  readonly signing: Signer;
  readonly settings: Pick<Settings, 'RUNYARD_ALLOW_PRIVATE_NETWORKS' | 'RUNYARD_DATA_DIR' | 'RUNYARD_SECRETS_KEY'>;
  baseUrl(): string;
}

/**
 * Selects old deliveries, delivered or not; their attempts are deleted too. The order of the ids is the order of time, so the primary key
 * finds old deliveries.
 */
const oldDeliveries: RowRule = {
  table: 'event_deliveries',
  isOver: `id < ${idAt('14 days')}`,
};

export function subscriptionsDomain(deps: SubscriptionDeps, channels: Channels): Domain {
  let deliverer: Deliverer | undefined;
  return {
    name: 'subscriptions',
    routes: () => subscriptionRoutes(deps),
    retention: { rows: [oldDeliveries] },
    gauges: [() => measureDueDeliveries(deps.db)],
    sealAgain: () => sealAgain(deps.db, deps.vault, sealedSubscriptions),
    open: async () => {
      const { db, log, vault, settings } = deps;
      const isSetting = settings.RUNYARD_SECRETS_KEY !== undefined;
      const problem = await findKeyProblemOfSubscriptions(db, {
        keyIds: vault.keyIds,
        file: secretsKeyFile(path.resolve(settings.RUNYARD_DATA_DIR)),
        isSetting,
      });
      if (problem !== null) log.warn(problem);
    },
    // Start the loop only now, because the payloads contain the address of the service, which was not known before.
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
        channels,
      });
      deliverer = opened;
      const settle = async () => {
        const { givenUp, sentAgain } = await settleUnsigned(db, vault.keyIds);
        if (givenUp > 0)
          log.warn({ deliveries: givenUp }, 'deliveries failed: their secrets were sealed with another key');
        if (sentAgain > 0)
          log.info({ deliveries: sentAgain }, 'deliveries are sent again: their secrets can be opened now');
        if (sentAgain > 0) await opened.deliver();
      };
      return [
        { name: 'delivering events', everyMs: 1_000, due: [dueDeliveries], work: () => opened.deliver() },
        {
          name: 'settling deliveries without their key',
          everyMs: 5_000,
          due: [dueDeliveries, unsignedDeliveries],
          work: settle,
        },
      ];
    },
    close: async () => await deliverer?.close(),
  };
}
