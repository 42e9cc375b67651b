/** Manages webhooks. */
import { type HmacSignature, isUnsignedScheme } from '@runyard/contract/webhooks/webhook-rules';
import type {
  SignatureSchemeName,
  Webhook,
  WebhookAuthMode,
  WebhookWithSecret,
} from '@runyard/contract/webhooks/webhooks';
import { allFactories } from '../all-factories.ts';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { readInput } from '../input-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { pickNamed } from '../named.ts';

type Json = { readonly json?: true };
type Client = ReturnType<typeof connect>;

/** Reads a secret from a file, so that it is in no argument. */
export function secretFrom(file: string | undefined): { secret?: string } {
  if (file === undefined) return {};
  const secret = readInput(file).toString('utf8').trim();
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

/** Finds a webhook by its UID or name, and its factory. */
export async function findWebhook(client: Client, wanted: string): Promise<{ factoryUid: string; webhookUid: string }> {
  const webhooks = (await allWebhooks(client)).map((webhook) => ({ ...webhook, id: webhook.uid }));
  const found = pickNamed(webhooks, wanted, { one: 'webhook', several: 'webhooks', list: 'webhooks list' });
  return { factoryUid: found.factoryUid, webhookUid: found.uid };
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
    { header: 'REASON', sentence: true, text: ({ disabled_reason: reason = '' }) => reason },
  ];
  const none = 'no webhooks; create one with: bin/runyard webhooks create FACTORY NAME';
  printList(context, { columns, rows: webhooks, json: { webhooks }, none }, options);
}

interface RuleOptions {
  /** False: the one of the scheme. */
  readonly deliveryIdPath?: string | false;
  readonly eventHeader?: string | false;
  readonly duplicateWindow?: number;
  /** JSON */
  readonly signature?: string;
}

/** Returns the members of a request by which deliveries are read. */
function rulesFrom({ deliveryIdPath: path, eventHeader: header, duplicateWindow, signature }: RuleOptions) {
  return {
    ...(path ? { delivery_id_path: path } : {}),
    ...(header ? { event_header: header } : {}),
    ...(duplicateWindow === undefined ? {} : { duplicate_window_seconds: duplicateWindow }),
    ...(signature === undefined ? {} : { signature: signatureFrom(signature) }),
  };
}

function signatureFrom(text: string): HmacSignature {
  try {
    // The service checks its members.
    return JSON.parse(text) as HmacSignature;
  } catch {
    throw new Failure('--signature: it must be JSON, such as {"header": "X-Signature", "prefix": "sha256="}');
  }
}

export interface CreateOptions extends Json, RuleOptions {
  readonly auth?: WebhookAuthMode;
  readonly scheme?: SignatureSchemeName;
  readonly secretFile?: string;
  readonly secretName?: string;
  readonly deliveryIdHeader?: string;
  readonly disabled?: true;
}

/** Creates a webhook, and prints its URL and its secret. */
export async function createWebhook(
  context: Context,
  factoryUid: string,
  name: string,
  { auth, scheme, secretFile, secretName, deliveryIdHeader, disabled, json, ...rules }: CreateOptions,
): Promise<void> {
  const mode = auth ?? (scheme === undefined ? undefined : isUnsignedScheme(scheme) ? 'url_token' : 'signature');
  const made = await connect(context).createWebhook({
    params: { factoryUid },
    body: {
      name,
      ...(mode === undefined ? {} : { auth_mode: mode }),
      ...(scheme === undefined ? {} : { signature_scheme: scheme }),
      ...(deliveryIdHeader === undefined ? {} : { delivery_id_header: deliveryIdHeader }),
      ...(secretName === undefined ? {} : { secret_name: secretName }),
      ...rulesFrom(rules),
      ...(disabled ? { enabled: false } : {}),
      ...secretFrom(secretFile),
    },
  });
  show(context, made, json);
}

export interface UpdateOptions extends RuleOptions {
  readonly name?: string;
  readonly secretName?: string;
  /** False if there are no more pages. */
  readonly deliveryIdHeader?: string | false;
}

/** Changes a webhook. */
export async function updateWebhook(
  context: Context,
  uid: string,
  { name, secretName, deliveryIdHeader: header, ...rules }: UpdateOptions,
): Promise<void> {
  const changes = [name, secretName, header, ...Object.values(rules)];
  if (changes.every((each) => each === undefined))
    throw new Failure('give what changes, such as --name or --secret-name; --help lists all');
  const client = connect(context);
  const body = {
    ...(name === undefined ? {} : { name }),
    ...(secretName === undefined ? {} : { secret_name: secretName }),
    ...(header === undefined ? {} : { delivery_id_header: header === false ? null : header }),
    ...(rules.deliveryIdPath === false ? { delivery_id_path: null } : {}),
    ...(rules.eventHeader === false ? { event_header: null } : {}),
    ...rulesFrom(rules),
  };
  await client.updateWebhook({ params: await findWebhook(client, uid), body });
  context.out(`${uid} is changed\n`);
}

function show(context: Context, webhook: WebhookWithSecret, json: true | undefined): void {
  if (json) {
    context.out(`${harmlessJson(webhook)}\n`);
    return;
  }
  context.out(`${webhook.uid}\n${webhook.url}\n`);
  if (webhook.secret_of_team) context.report(`its secret is the secret ${webhook.secret_name} of the team`);
  else if (webhook.secret === undefined)
    context.report(
      `it is disabled until its secret is stored: bin/runyard webhooks rotate ${webhook.uid} --secret-file FILE`,
    );
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
  context.out(`${params.webhookUid} is ${action}d\n`);
}

/** Deletes a webhook. */
export async function deleteWebhook(context: Context, uid: string): Promise<void> {
  const client = connect(context);
  const params = await findWebhook(client, uid);
  await client.deleteWebhook({ params });
  context.out(`${params.webhookUid} is deleted\n`);
}
