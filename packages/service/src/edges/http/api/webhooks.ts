import { Readable } from 'node:stream';
import { maxFactoryWebhooks } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { faultOfProof } from '@runyard/contract/webhook-rules';
import type {
  CreateWebhookRequest,
  UpdateWebhookRequest,
  Webhook,
  WebhookDelivery,
  WebhookWithSecret,
} from '@runyard/contract/webhooks';
import type { FastifyInstance } from 'fastify';
import type { Fault } from '../../../platform/fault.ts';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { readFactory } from '../../../triggers/factories/factories.ts';
import { type ReplayOutcome, replayDelivery } from '../../../triggers/starts/deliveries/replay.ts';
import { rotateWebhookSecret, updateWebhook } from '../../../triggers/webhooks/change.ts';
import { listWebhookDeliveries, readWebhookDelivery } from '../../../triggers/webhooks/log/deliveries.ts';
import { isMadeByProvider, openWebhookSecret, secretFault } from '../../../triggers/webhooks/secrets/secret.ts';
import {
  type BadSecret,
  createWebhook,
  deleteWebhook,
  listWebhooks,
  readWebhook,
  type SealedWebhook,
  type StoredWebhook,
  type WebhookAddress,
  webhookUrl,
} from '../../../triggers/webhooks/webhooks.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { downloadHeaders, sendContent } from '../server/download.ts';

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

/** Returns what is wrong with the members of a request together. */
function faultOfCreate({ auth_mode, signature_scheme, signature, secret }: CreateWebhookRequest): Fault | null {
  const proof = { mode: auth_mode, scheme: signature_scheme, hasSignature: signature !== undefined };
  const fault = faultOfProof(proof);
  if (fault) return { path: fault.member === 'scheme' ? 'signature_scheme' : 'signature', message: fault.message };
  const message = secret === undefined ? null : secretFault({ auth_mode, signature_scheme }, secret);
  return message === null ? null : { path: 'secret', message };
}

/** Registers the management of webhooks, and their logs. */
export function registerWebhookRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, vault, signing, webhooks: directory, startDeliveries } = deps;
  const toAnswer = (webhook: StoredWebhook): Webhook => ({
    ...webhook,
    url: webhookUrl(deps.webhookBaseUrl(), webhook),
  });
  const withSecret = ({ webhook, sealedSecret }: SealedWebhook): WebhookWithSecret => {
    if (sealedSecret === null) return toAnswer(webhook);
    const secret = openWebhookSecret(vault, webhook.uid, Buffer.from(sealedSecret, 'base64'));
    return { ...webhook, url: webhookUrl(deps.webhookBaseUrl(), webhook, secret), secret };
  };

  addRoute(app, routes.listWebhooks, async ({ principal, params }) => {
    if (!(await readFactory(db, principal.teamId, params.factoryUid))) return notFound('factory');
    const webhooks = await listWebhooks(db, principal.teamId, params.factoryUid);
    return { webhooks: webhooks.map(toAnswer), page_info: { has_next_page: false } };
  });

  addRoute(app, routes.createWebhook, async (call) => {
    const { principal, params, body } = call;
    const fault = faultOfCreate(body);
    if (fault) return invalid([fault]);
    // The answer that is stored for a repetition has the secret encrypted, as the table has.
    const outcome = await once<SealedWebhook, 'no_factory' | 'too_many' | BadSecret>(db, call.once, async (tx) => {
      const made = await createWebhook(tx, vault, principal, params.factoryUid, body);
      return 'webhook' in Object(made)
        ? { kind: 'done', response: made as SealedWebhook }
        : { kind: 'failed', failure: made as Exclude<typeof made, SealedWebhook> };
    });
    const made = answerOnce(outcome, (failure) => {
      if (failure === 'no_factory') return notFound('factory');
      if (failure !== 'too_many') return invalid([failure.fault]);
      return refuse('conflict', { detail: `A factory has at most ${maxFactoryWebhooks} webhooks; delete one.` });
    });
    return 'webhook' in made ? withSecret(made) : made;
  });

  addRoute(app, routes.getWebhook, async ({ principal, params }) => {
    const webhook = await readWebhook(db, addressOf(principal, params));
    return webhook ? toAnswer(webhook) : noWebhook();
  });

  type Params = Parameters<typeof addressOf>[1];
  const change = async (principal: Principal, params: Params, body: UpdateWebhookRequest) => {
    const outcome = await db.transaction((tx) =>
      updateWebhook(tx, vault, principal, addressOf(principal, params), body),
    );
    if (outcome === null) return noWebhook();
    if (outcome === 'no_secret') return noSecret();
    return 'kind' in outcome ? invalid([outcome.fault]) : toAnswer(outcome);
  };

  addRoute(app, routes.updateWebhook, ({ principal, params, body }) => change(principal, params, body));
  addRoute(app, routes.enableWebhook, ({ principal, params }) => change(principal, params, { enabled: true }));
  addRoute(app, routes.disableWebhook, ({ principal, params }) => change(principal, params, { enabled: false }));

  addRoute(app, routes.deleteWebhook, async ({ principal, params }) => {
    const wasThere = await db.transaction((tx) => deleteWebhook(tx, principal, addressOf(principal, params)));
    return wasThere ? { success: true as const } : noWebhook();
  });

  addRoute(app, routes.rotateWebhookSecret, async ({ principal, params, body }) => {
    const address = addressOf(principal, params);
    const webhook = await readWebhook(db, address);
    if (!webhook) return noWebhook();
    const { secret, grace_seconds: graceSeconds } = body;
    if (webhook.secret_of_team)
      return refuse('conflict', {
        detail: `The secret of this webhook is the secret ${webhook.secret_name} of the team: change it with PUT /secrets/${webhook.secret_name}.`,
      });
    if (secret === undefined && isMadeByProvider(webhook))
      return invalid([{ path: 'secret', message: 'is required: the provider makes the secret of this webhook' }]);
    const message = secret === undefined ? null : secretFault(webhook, secret);
    if (message !== null) return invalid([{ path: 'secret', message }]);
    const sealed = await db.transaction((tx) =>
      rotateWebhookSecret(tx, vault, principal, address, { webhook, secret, graceSeconds }),
    );
    return sealed ? withSecret(sealed) : noWebhook();
  });

  addRoute(app, routes.listWebhookDeliveries, async ({ principal, params, query }) => {
    const webhook = await readWebhook(db, addressOf(principal, params));
    if (!webhook) return noWebhook();
    const page = await listWebhookDeliveries(db, signing, webhook.uid, query);
    return (
      page ?? invalid([{ path: 'cursor', message: 'is not a cursor of this list; send the query of the page before' }])
    );
  });

  const find = async (principal: Principal, params: Params & { readonly deliveryId: string }) => {
    const webhook = await readWebhook(db, addressOf(principal, params));
    if (!webhook) return noWebhook();
    const found = isUuid(params.deliveryId) && (await readWebhookDelivery(db, webhook.uid, params.deliveryId));
    return found || noDelivery();
  };

  addRoute(app, routes.getWebhookDelivery, async ({ principal, params }) => {
    const found = await find(principal, params);
    if (found instanceof Refusal) return found;
    const { payload, headers } = found;
    const delivery = { ...found.delivery, ...(Object.keys(headers).length === 0 ? {} : { headers }) };
    // Sent as it was received: parsing would change a large number, and a deeply nested value could not be written again.
    return payload ? Readable.from([`${JSON.stringify(delivery).slice(0, -1)},"payload":`, payload, '}']) : delivery;
  });

  addRoute(app, routes.getWebhookDeliveryPayload, async ({ principal, params, reply }) => {
    const found = await find(principal, params);
    if (found instanceof Refusal) return found;
    if (!found.payload)
      return refuse('resource_not_found', {
        detail: 'The delivery has no stored payload: only an accepted one has, until it is deleted to make room.',
      });
    downloadHeaders(reply, `${params.deliveryId}.json`, 'application/octet-stream');
    await sendContent(reply, found.payload);
    return reply;
  });

  addRoute(app, routes.replayWebhookDelivery, async (call) => {
    const { principal, params } = call;
    const webhook = await readWebhook(db, addressOf(principal, params));
    if (!webhook) return noWebhook();
    if (!isUuid(params.deliveryId)) return noDelivery();
    type Failure = Exclude<ReplayOutcome, { kind: 'replayed' }>;
    const outcome = await once<WebhookDelivery, Failure>(db, call.once, async (tx) => {
      const replay = await replayDelivery(
        tx,
        { directory, startDeliveries },
        principal,
        webhook.uid,
        params.deliveryId,
      );
      return replay.kind === 'replayed'
        ? { kind: 'done', response: replay.delivery }
        : { kind: 'failed', failure: replay };
    });
    return answerOnce(outcome, refusedReplay);
  });
}

function refusedReplay(failure: Exclude<ReplayOutcome, { kind: 'replayed' }>): Refusal {
  switch (failure.kind) {
    case 'not_found':
      return noDelivery();
    case 'no_payload':
      return refuse('conflict', {
        detail: 'The delivery has no stored payload: only an accepted one has, until it is deleted to make room.',
      });
    case 'disabled':
      return refuse('conflict', { detail: 'The webhook is disabled; enable it first.' });
    case 'rate_limited':
      return refuse('resource_unavailable', {
        detail: 'The webhook has had 60 deliveries within a minute. Replay this one after Retry-After seconds.',
        headers: { 'retry-after': String(Math.ceil(failure.retryAfterMs / 1000)) },
      });
  }
}
