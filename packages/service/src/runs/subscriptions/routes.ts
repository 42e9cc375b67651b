import { maxSubscriptions } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Settings } from '@runyard/contract/settings/settings';
import { makeAddressRules } from '@runyard/system/address-rules';
import { checkUrl } from '../../platform/check-url.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import { invalid, notFound, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import { enqueuePing, listDeliveries, redeliver } from './deliveries.ts';
import {
  createSubscription,
  deleteSubscription,
  listSubscriptions,
  openSecret,
  readSubscription,
  rotateSecret,
  type SealedSubscription,
  updateSubscription,
} from './subscriptions.ts';

const noSubscription = () => notFound('event subscription');

interface SubscriptionRouteDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly signing: Signer;
  readonly settings: Pick<Settings, 'RUNYARD_ALLOW_PRIVATE_NETWORKS'>;
}

/** Event subscriptions and their deliveries. */
export function subscriptionRoutes({ db, vault, signing, settings }: SubscriptionRouteDeps): readonly ServedRoute[] {
  const networks = settings.RUNYARD_ALLOW_PRIVATE_NETWORKS;
  const rules = makeAddressRules(networks);
  /** Returns the refusal of a URL that the service must not call; null if the service may call it. */
  const refuseUrl = (url: string | undefined) => {
    const fault = url === undefined ? null : checkUrl(url, rules, networks.length > 0);
    return fault && invalid([fault]);
  };

  const find = async (principal: Principal, id: string) =>
    isUuid(id) ? await readSubscription(db, principal.teamId, id) : null;

  const withSecret = (sealed: SealedSubscription) => ({ ...sealed.subscription, secret: openSecret(vault, sealed) });

  return [
    serve(routes.listEventSubscriptions, async ({ principal }) => ({
      subscriptions: await listSubscriptions(db, principal.teamId),
    })),

    serveOnce(routes.createEventSubscription, {
      check: async ({ body }) => refuseUrl(body.url),
      // The answer that is stored for repeated requests has the secret encrypted, as in the table.
      work: async (tx, { principal, body }) => {
        const created = await createSubscription(tx, vault, principal.teamId, body, principal);
        if (created !== 'too_many') return created;
        return refuse('conflict', {
          detail: `A team has at most ${maxSubscriptions} event subscriptions; delete one.`,
        });
      },
      answer: withSecret,
    }),

    serve(routes.getEventSubscription, async ({ principal, params }) => {
      return (await find(principal, params.subscriptionId)) ?? noSubscription();
    }),

    serve(routes.updateEventSubscription, async ({ principal, params, body }) => {
      if (!isUuid(params.subscriptionId)) return noSubscription();
      const refused = refuseUrl(body.url);
      if (refused) return refused;
      return (
        (await updateSubscription(db, principal.teamId, params.subscriptionId, body, principal)) ?? noSubscription()
      );
    }),

    serve(routes.deleteEventSubscription, async ({ principal, params }) => {
      const { subscriptionId } = params;
      const wasThere =
        isUuid(subscriptionId) && (await deleteSubscription(db, principal.teamId, subscriptionId, principal));
      return wasThere ? { success: true as const } : noSubscription();
    }),

    serve(routes.rotateEventSubscriptionSecret, async ({ principal, params }) => {
      const { subscriptionId } = params;
      const sealed = isUuid(subscriptionId)
        ? await rotateSecret(db, vault, principal.teamId, subscriptionId, principal)
        : null;
      return sealed ? withSecret(sealed) : noSubscription();
    }),

    serveOnce(routes.testEventSubscription, {
      check: async ({ principal, params }) =>
        (await find(principal, params.subscriptionId)) ? null : noSubscription(),
      work: (tx, { params }) => enqueuePing(tx, params.subscriptionId),
    }),

    serve(routes.listEventDeliveries, async ({ principal, params, query }) => {
      const subscription = await find(principal, params.subscriptionId);
      if (!subscription) return noSubscription();
      const page = await listDeliveries(db, signing, subscription.id, query);
      return page ?? wrongCursor();
    }),

    serve(routes.redeliverEvent, async ({ principal, params }) => {
      const subscription = await find(principal, params.subscriptionId);
      if (!subscription) return noSubscription();
      if (!isUuid(params.deliveryId)) return notFound('delivery');
      const outcome = await redeliver(db, subscription.id, params.deliveryId);
      switch (outcome.kind) {
        case 'pending':
          return outcome.delivery;
        case 'not_found':
          return notFound('delivery');
        case 'disabled':
          return refuse('conflict', { detail: 'The subscription is disabled; enable it first.' });
        case 'under_way':
          return refuse('conflict', { detail: 'The delivery is being sent right now.' });
      }
    }),
  ];
}
