/** Manages webhooks and their logs. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type {
  SignatureSchemeName,
  Webhook,
  WebhookAuthMode,
  WebhookDelivery,
  WebhookWithSecret,
} from '@runyard/contract/webhooks';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { allFactories } from './factories.ts';

type Json = { readonly json?: true };
type Client = ReturnType<typeof connect>;

/** Reads a secret from a file, so that it is in no argument. */
function secretFrom(file: string | undefined): { secret?: string } {
  if (file === undefined) return {};
  const secret = readFileSync(file === '-' ? 0 : file, 'utf8').trim();
  if (secret === '') throw new Failure(`${file}: there is no secret in it`);
  return { secret };
}

async function allWebhooks(client: Client): Promise<(Webhook & { readonly factoryUid: string })[]> {
  const found: (Webhook & { readonly factoryUid: string })[] = [];
  for (const { uid: factoryUid } of await allFactories(client)) {
    const { webhooks } = await client.listWebhooks({ params: { factoryUid } });
    found.push(...webhooks.map((webhook) => ({ ...webhook, factoryUid })));
  }
  return found;
}

/** Finds the factory of a webhook. */
export async function findWebhook(
  client: Client,
  webhookUid: string,
): Promise<{ factoryUid: string; webhookUid: string }> {
  const found = (await allWebhooks(client)).find(({ uid }) => uid === webhookUid);
  if (!found) throw new Failure('there is no such webhook; see: bin/runyard webhooks list');
  return { factoryUid: found.factoryUid, webhookUid };
}

/** Lists the webhooks of the team. */
export async function listWebhooks(context: Context, options: Json): Promise<void> {
  const webhooks = await allWebhooks(connect(context));
  const columns: Column<(typeof webhooks)[number]>[] = [
    { header: 'WEBHOOK', text: ({ uid }) => uid },
    { header: 'FACTORY', text: ({ factoryUid }) => factoryUid },
    {
      header: 'STATUS',
      text: ({ enabled }) => (enabled ? 'enabled' : 'disabled'),
      paint: ({ enabled }, colours) => (enabled ? colours.green : colours.yellow),
    },
    { header: 'SENDER', text: ({ auth_mode, signature_scheme }) => signature_scheme ?? auth_mode },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
  ];
  const none = 'no webhooks; create one with: bin/runyard webhooks create FACTORY NAME';
  printList(context, { columns, rows: webhooks, json: { webhooks }, none }, options);
}

export interface CreateOptions extends Json {
  readonly auth?: WebhookAuthMode;
  readonly scheme?: SignatureSchemeName;
  readonly secretFile?: string;
  readonly deliveryIdHeader?: string;
}

/** Creates a webhook, and prints its URL and its secret. */
export async function createWebhook(
  context: Context,
  factoryUid: string,
  name: string,
  { auth, scheme, secretFile, deliveryIdHeader, json }: CreateOptions,
): Promise<void> {
  const made = await connect(context).createWebhook({
    params: { factoryUid },
    body: {
      name,
      ...(auth === undefined ? {} : { auth_mode: auth }),
      ...(scheme === undefined ? {} : { signature_scheme: scheme }),
      ...(deliveryIdHeader === undefined ? {} : { delivery_id_header: deliveryIdHeader }),
      ...secretFrom(secretFile),
    },
  });
  show(context, made, json);
}

function show(context: Context, webhook: WebhookWithSecret, json: true | undefined): void {
  if (json) {
    context.out(`${harmlessJson(webhook)}\n`);
    return;
  }
  context.out(`${webhook.uid}\n${webhook.url}\n`);
  if (webhook.secret === undefined)
    context.report('it is disabled until its secret is stored: bin/runyard webhooks rotate UID --secret-file FILE');
  else if (webhook.auth_mode !== 'url_token') context.out(`${harmlessLine(webhook.secret)}\n`);
}

/** Shows a webhook as JSON. */
export async function showWebhook(context: Context, uid: string): Promise<void> {
  const client = connect(context);
  context.out(`${harmlessJson(await client.getWebhook({ params: await findWebhook(client, uid) }))}\n`);
}

/** Gives a webhook a new secret, and prints it. */
export async function rotateWebhook(
  context: Context,
  uid: string,
  { secretFile, grace, json }: Json & { readonly secretFile?: string; readonly grace?: number },
): Promise<void> {
  const client = connect(context);
  const body = { ...secretFrom(secretFile), ...(grace === undefined ? {} : { grace_seconds: grace }) };
  show(context, await client.rotateWebhookSecret({ params: await findWebhook(client, uid), body }), json);
}

/** Enables or disables a webhook. */
export async function setWebhook(context: Context, action: 'enable' | 'disable', uid: string): Promise<void> {
  const client = connect(context);
  const params = await findWebhook(client, uid);
  await (action === 'enable' ? client.enableWebhook({ params }) : client.disableWebhook({ params }));
  context.out(`${uid} is ${action}d\n`);
}

/** Deletes a webhook. */
export async function deleteWebhook(context: Context, uid: string): Promise<void> {
  const client = connect(context);
  await client.deleteWebhook({ params: await findWebhook(client, uid) });
  context.out(`${uid} is deleted\n`);
}

/** Lists deliveries, newest first. */
export async function listDeliveries(
  context: Context,
  uid: string,
  { limit = 20, ...options }: Json & { readonly limit?: number },
): Promise<void> {
  const client = connect(context);
  const found = await client.listWebhookDeliveries({ params: await findWebhook(client, uid), query: { limit } });
  const now = Date.now();
  const columns: Column<WebhookDelivery>[] = [
    { header: 'DELIVERY', text: ({ delivery_id }) => delivery_id },
    { header: 'LABEL', text: ({ label }) => label },
    { header: 'BYTES', text: ({ size_bytes }) => String(size_bytes) },
    {
      header: 'RECEIVED',
      text: ({ received_at }) => formatAgo(received_at, now),
      raw: ({ received_at }) => received_at,
    },
    { header: 'RUNS', text: ({ runs = [] }) => String(runs.length) },
    { header: 'IDENTITY', flexible: true, text: ({ identity = '' }) => identity },
  ];
  printList(context, { columns, rows: found.deliveries, json: found, none: 'no deliveries' }, options);
}

/** Evaluates a delivery again, and prints the id of the new one. */
export async function replayDelivery(context: Context, uid: string, deliveryId: string): Promise<void> {
  const client = connect(context);
  const params = { ...(await findWebhook(client, uid)), deliveryId };
  context.out(`${(await client.replayWebhookDelivery({ params })).delivery_id}\n`);
}

const lookEveryMs = 1_000;

/** Sends the payload of each delivery that is accepted from now on to an address, until the command is interrupted. */
export async function listenToWebhook(context: Context, uid: string, { to }: { readonly to: string }): Promise<void> {
  if (!/^https?:$/.test(URL.parse(to)?.protocol ?? ''))
    throw new Failure('--to: it must be an http:// or https:// URL');
  const client = connect(context);
  const params = await findWebhook(client, uid);
  const query = { limit: 100, label: 'ACCEPTED' } as const;
  // Ids sort by time.
  let last = (await client.listWebhookDeliveries({ params, query })).deliveries[0]?.delivery_id ?? '';
  context.report(`deliveries to ${uid} go to ${harmlessLine(to)}. Ctrl-C ends this.`);
  for (;;) {
    const { deliveries } = await client.listWebhookDeliveries({ params, query });
    for (const { delivery_id: deliveryId } of deliveries.filter((each) => each.delivery_id > last).reverse()) {
      const { payload } = await client.getWebhookDelivery({ params: { ...params, deliveryId } });
      context.out(`${deliveryId} ${await forward(to, deliveryId, payload)}\n`);
      last = deliveryId;
    }
    await delay(lookEveryMs);
  }
}

/** Returns the status of the answer, or why there is none. */
async function forward(to: string, deliveryId: string, payload: unknown): Promise<string> {
  try {
    const answer = await fetch(to, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-delivery-id': deliveryId },
      body: JSON.stringify(payload),
      signal: AbortSignal.timeout(30_000),
    });
    await answer.body?.cancel();
    return String(answer.status);
  } catch (error) {
    return error instanceof Error ? harmlessLine(error.message) : 'no answer';
  }
}
