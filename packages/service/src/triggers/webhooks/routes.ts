import { Readable } from 'node:stream';
import { maxFactoryWebhooks } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { UpdateWebhookRequest, Webhook, WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import type { Signer } from '../../platform/secrets/signer.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import { invalid, notFound, Refusal, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import { readFactory } from '../factories/factories.ts';
import { updateWebhook } from './change.ts';
import { faultOfCreate, rotateSecret } from './check.ts';
import { openWebhookSecret } from './ingest/secrets.ts';
import { listWebhookDeliveries, readWebhookDelivery } from './log/deliveries.ts';
import { listTeamDeliveries } from './log/team-log.ts';
import { listTeamWebhooks } from './team-list.ts';
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  readWebhook,
  type SealedWebhook,
  type StoredWebhook,
  type WebhookAddress,
  webhookUrl,
} from './webhooks.ts';

const noWebhook = () => notFound('webhook');
const noDelivery = () => notFound('delivery');
const noSecret = () =>
  refuse('conflict', {
    detail:
      'The webhook has no secret yet. Store it with POST …/rotate-secret, or name a secret of the team with PATCH secret_name first.',
  });

const addressOf = (
  { teamId }: Principal,
  params: { readonly factoryUid: string; readonly webhookUid: string },
): WebhookAddress => ({ teamId, ...params });

interface WebhookRouteDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly signing: Signer;
  /** Returns the origin under which senders reach the webhooks. */
  webhookBaseUrl(): string;
}

/** The routes that create, read, change and delete webhooks, and read their logs. */
export function webhookRoutes(deps: WebhookRouteDeps): readonly ServedRoute[] {
  const { db, vault, signing } = deps;
  const toAnswer = (webhook: StoredWebhook): Webhook => ({
    ...webhook,
    url: webhookUrl(deps.webhookBaseUrl(), webhook),
  });
  const withSecret = ({ webhook, sealedSecret }: SealedWebhook): WebhookWithSecret => {
    if (sealedSecret === null) return toAnswer(webhook);
    const secret = openWebhookSecret(vault, webhook.uid, Buffer.from(sealedSecret, 'base64'));
    return { ...webhook, url: webhookUrl(deps.webhookBaseUrl(), webhook, secret), secret };
  };

  type Params = Parameters<typeof addressOf>[1];
  const change = async (principal: Principal, params: Params, body: UpdateWebhookRequest) => {
    const outcome = await db.transaction((tx) =>
      updateWebhook(tx, vault, principal, addressOf(principal, params), body),
    );
    if (outcome === null) return noWebhook();
    if (outcome === 'no_secret') return noSecret();
    return 'kind' in outcome ? invalid([outcome.fault]) : toAnswer(outcome);
  };

  const find = async (principal: Principal, params: Params & { readonly deliveryId: string }) => {
    const webhook = await readWebhook(db, addressOf(principal, params));
    if (!webhook) return noWebhook();
    const found = isUuid(params.deliveryId) && (await readWebhookDelivery(db, webhook.uid, params.deliveryId));
    return found || noDelivery();
  };

  return [
    serve(routes.listWebhooks, async ({ principal, params }) => {
      if (!(await readFactory(db, principal.teamId, params.factoryUid))) return notFound('factory');
      const webhooks = await listWebhooks(db, principal.teamId, params.factoryUid);
      return { webhooks: webhooks.map(toAnswer), page_info: { has_next_page: false } };
    }),

    serve(routes.listTeamWebhooks, async ({ principal: { teamId }, query }) => {
      const page = await listTeamWebhooks(db, signing, teamId, query);
      if (page === null) return wrongCursor();
      const webhooks = page.webhooks.map((each) => ({ ...each, url: webhookUrl(deps.webhookBaseUrl(), each) }));
      return { ...page, webhooks };
    }),

    serve(
      routes.listTeamDeliveries,
      async ({ principal: { teamId }, query }) =>
        (await listTeamDeliveries(db, signing, teamId, query)) ?? wrongCursor(),
    ),

    serveOnce(routes.createWebhook, {
      check: async ({ body }) => {
        const fault = faultOfCreate(body);
        return fault && invalid([fault]);
      },
      // The result that is recorded for repetitions of the request contains the secret only encrypted, as in the table.
      work: async (tx, { principal, params, body }) => {
        const made = await createWebhook(tx, vault, principal, params.factoryUid, body);
        if (made === 'no_factory') return notFound('factory');
        if (made === 'too_many')
          return refuse('conflict', { detail: `A factory has at most ${maxFactoryWebhooks} webhooks; delete one.` });
        return 'fault' in made ? invalid([made.fault]) : made;
      },
      answer: withSecret,
    }),

    serve(routes.getWebhook, async ({ principal, params }) => {
      const webhook = await readWebhook(db, addressOf(principal, params));
      return webhook ? toAnswer(webhook) : noWebhook();
    }),

    serve(routes.updateWebhook, ({ principal, params, body }) => change(principal, params, body)),
    serve(routes.enableWebhook, ({ principal, params }) => change(principal, params, { enabled: true })),
    serve(routes.disableWebhook, ({ principal, params }) => change(principal, params, { enabled: false })),

    serve(routes.deleteWebhook, async ({ principal, params }) => {
      const wasThere = await db.transaction((tx) => deleteWebhook(tx, principal, addressOf(principal, params)));
      return wasThere ? { success: true as const } : noWebhook();
    }),

    serve(routes.rotateWebhookSecret, async ({ principal, params, body }) => {
      const outcome = await rotateSecret({ db, vault }, principal, addressOf(principal, params), body);
      switch (outcome.kind) {
        case 'rotated':
          return withSecret(outcome.sealed);
        case 'not_found':
          return noWebhook();
        case 'invalid':
          return invalid([outcome.fault]);
        case 'of_team':
          return refuse('conflict', {
            detail: `The secret of this webhook is the secret ${outcome.name} of the team: change it with PUT /secrets/${outcome.name}.`,
          });
      }
    }),

    serve(routes.listWebhookDeliveries, async ({ principal, params, query }) => {
      const webhook = await readWebhook(db, addressOf(principal, params));
      if (!webhook) return noWebhook();
      return (await listWebhookDeliveries(db, signing, webhook.uid, query)) ?? wrongCursor();
    }),

    serve(routes.getWebhookDelivery, async ({ principal, params }) => {
      const found = await find(principal, params);
      if (found instanceof Refusal) return found;
      const { payload, headers } = found;
      const delivery = { ...found.delivery, ...(Object.keys(headers).length === 0 ? {} : { headers }) };
      // Send the bytes that were received. Parsing them and writing them again would change large numbers, and would fail for deeply nested values.
      return payload ? Readable.from([`${JSON.stringify(delivery).slice(0, -1)},"payload":`, payload, '}']) : delivery;
    }),
  ];
}
