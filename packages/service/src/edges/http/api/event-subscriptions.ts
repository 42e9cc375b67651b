import { makeAddressRules } from '@runyard/contract/address-rules';
import { maxSubscriptions } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import type { Fault } from '../../../platform/fault.ts';
import { answerOnce, idempotencyConflict } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { checkUrl } from '../../../runs/subscriptions/check-url.ts';
import { enqueuePing, listDeliveries, redeliver } from '../../../runs/subscriptions/deliveries.ts';
import {
  createSubscription,
  deleteSubscription,
  listSubscriptions,
  openSecret,
  readSubscription,
  rotateSecret,
  type SealedSubscription,
  updateSubscription,
} from '../../../runs/subscriptions/subscriptions.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

const noSubscription = () => notFound('event subscription');

/** Registers event subscriptions and their deliveries. */
export function registerEventSubscriptionRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, vault, settings, signing } = deps;
  const networks = settings.RUNYARD_ALLOW_PRIVATE_NETWORKS;
  const rules = makeAddressRules(networks);
  const faultOf = (url: string | undefined): Fault | null =>
    url === undefined ? null : checkUrl(url, rules, networks.length > 0);

  const find = async (principal: Principal, id: string) =>
    isUuid(id) ? await readSubscription(db, principal.teamId, id) : null;

  const withSecret = (sealed: SealedSubscription) => ({ ...sealed.subscription, secret: openSecret(vault, sealed) });

  addRoute(app, routes.listEventSubscriptions, async ({ principal }) => ({
    subscriptions: await listSubscriptions(db, principal.teamId),
  }));

  addRoute(app, routes.createEventSubscription, async (call) => {
    const { principal, body } = call;
    const fault = faultOf(body.url);
    if (fault) return invalid([fault]);
    // The answer that is stored for a repetition has the secret encrypted, as the table has.
    const outcome = await once<SealedSubscription, 'too_many'>(db, call.once, async (tx) => {
      const created = await createSubscription(tx, vault, principal.teamId, body, principal);
      return created === 'too_many' ? { kind: 'failed', failure: created } : { kind: 'done', response: created };
    });
    const created = answerOnce(outcome, () =>
      refuse('conflict', { detail: `A team has at most ${maxSubscriptions} event subscriptions; delete one.` }),
    );
    return created instanceof Refusal ? created : withSecret(created);
  });

  addRoute(app, routes.getEventSubscription, async ({ principal, params }) => {
    return (await find(principal, params.subscriptionId)) ?? noSubscription();
  });

  addRoute(app, routes.updateEventSubscription, async ({ principal, params, body }) => {
    if (!isUuid(params.subscriptionId)) return noSubscription();
    const fault = faultOf(body.url);
    if (fault) return invalid([fault]);
    return (await updateSubscription(db, principal.teamId, params.subscriptionId, body, principal)) ?? noSubscription();
  });

  addRoute(app, routes.deleteEventSubscription, async ({ principal, params }) => {
    const { subscriptionId } = params;
    const wasThere =
      isUuid(subscriptionId) && (await deleteSubscription(db, principal.teamId, subscriptionId, principal));
    return wasThere ? { success: true as const } : noSubscription();
  });

  addRoute(app, routes.rotateEventSubscriptionSecret, async ({ principal, params }) => {
    const { subscriptionId } = params;
    const sealed = isUuid(subscriptionId)
      ? await rotateSecret(db, vault, principal.teamId, subscriptionId, principal)
      : null;
    return sealed ? withSecret(sealed) : noSubscription();
  });

  addRoute(app, routes.testEventSubscription, async ({ principal, params, once: request }) => {
    const subscription = await find(principal, params.subscriptionId);
    if (!subscription) return noSubscription();
    const outcome = await once(db, request, async (tx) => ({
      kind: 'done',
      response: await enqueuePing(tx, subscription.id),
    }));
    return outcome.kind === 'done' ? outcome.response : idempotencyConflict();
  });

  addRoute(app, routes.listEventDeliveries, async ({ principal, params, query }) => {
    const subscription = await find(principal, params.subscriptionId);
    if (!subscription) return noSubscription();
    const page = await listDeliveries(db, signing, subscription.id, query);
    return (
      page ?? invalid([{ path: 'cursor', message: 'is not a cursor of this list; send the query of the page before' }])
    );
  });

  addRoute(app, routes.redeliverEvent, async ({ principal, params }) => {
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
  });
}
