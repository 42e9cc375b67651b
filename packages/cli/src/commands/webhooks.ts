/** Manages webhooks. */
import { type HmacSignature, isUnsignedScheme } from '@runyard/contract/webhooks/webhook-rules';
import type { SignatureSchemeName, WebhookAuthMode, WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { signatureSchemeNames, webhookAuthModes } from '@runyard/contract/wire/choices';
import { type Command, Option } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import { readInput } from '../input-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { allWebhooks, contextAndId, findWebhook } from '../named.ts';
import { asJson, factoryHelp, webhookHelp, wholeNumberOrZero } from '../options.ts';
import { declareDeliveries } from './deliveries.ts';
import { declareSimulate } from './simulations.ts';
import { declareListen } from './webhook-listen.ts';

type Json = { readonly json?: true };

/** Reads a secret from a file, because other users of the machine could read an argument. */
export function secretFrom(file: string | undefined): { secret?: string } {
  if (file === undefined) return {};
  const secret = readInput(file).toString('utf8').trim();
  if (secret === '') throw new Failure(`${file}: the file contains no secret`);
  return { secret };
}

/** Lists the webhooks of the team. */
export async function listWebhooks(context: Context, options: Json): Promise<void> {
  const webhooks = await allWebhooks(connect(context));
  const columns: Column<(typeof webhooks)[number]>[] = [
    { header: 'WEBHOOK', text: ({ uid }) => uid },
    { header: 'FACTORY', text: ({ factory_uid: uid }) => uid },
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
  /** False: removes the value of the webhook, so that the value of its signature scheme is used. */
  readonly deliveryIdPath?: string | false;
  readonly eventHeader?: string | false;
  readonly duplicateWindow?: number;
  /** JSON text of an HMAC signature with its own rules. */
  readonly signature?: string;
}

/** Returns the members of a request that define how the service reads the deliveries. */
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
    // The members are not checked here, because the service checks them.
    return JSON.parse(text) as HmacSignature;
  } catch {
    throw new Failure('--signature: it must be JSON, such as {"header": "X-Signature", "prefix": "sha256="}');
  }
}

interface CreateOptions extends Json, RuleOptions {
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
  const createdWebhook = await connect(context).createWebhook({
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
  show(context, createdWebhook, json);
}

interface UpdateOptions extends RuleOptions {
  readonly name?: string;
  readonly secretName?: string;
  /** False: removes the name of the header, so that deliveries have no id in a header. */
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
    throw new Failure('set at least one option, such as --name or --secret-name; --help lists all');
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
  if (webhook.secret_of_team) context.report(`it uses the secret ${webhook.secret_name} of the team`);
  else if (webhook.secret === undefined)
    context.report(
      `it is disabled until its secret is stored: bin/runyard webhooks rotate ${webhook.uid} --secret-file FILE`,
    );
  else if (webhook.auth_mode !== 'url_token') context.out(`${harmlessLine(webhook.secret)}\n`);
}

/** Shows a webhook as JSON. */
async function showWebhook(context: Context, uid: string): Promise<void> {
  const client = connect(context);
  context.out(`${harmlessJson(await client.getWebhook({ params: await findWebhook(client, uid) }))}\n`);
}

/** Gives a webhook a new secret, and prints it. */
async function rotateWebhook(
  context: Context,
  uid: string,
  { secretFile, grace, json }: Json & { readonly secretFile?: string; readonly grace?: number },
): Promise<void> {
  const client = connect(context);
  const body = { ...secretFrom(secretFile), ...(grace === undefined ? {} : { grace_seconds: grace }) };
  show(context, await client.rotateWebhookSecret({ params: await findWebhook(client, uid), body }), json);
}

/** Enables or disables a webhook. */
async function setWebhook(context: Context, action: 'enable' | 'disable', uid: string): Promise<void> {
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

/** Declares the command `webhooks`. */
export function declareWebhooks(webhooks: Command): void {
  webhooks
    .command('list', { isDefault: true })
    .description('list the webhooks of the team')
    .option(...asJson)
    .action((options) => listWebhooks(processContext(), options));
  webhooks
    .command('create')
    .description('create a webhook, and print its URL and its secret')
    .argument('<factory>', factoryHelp)
    .argument('<name>', 'name of the webhook')
    .addOption(new Option('--auth <mode>', 'how senders prove themselves').choices(webhookAuthModes))
    .addOption(
      new Option(
        '--scheme <scheme>',
        'the sender; then --auth is signature, or url_token for senders without signatures',
      ).choices(signatureSchemeNames),
    )
    .option('--secret-file <file>', 'file with the secret of the provider, - for standard input')
    .option('--secret-name <name>', 'secret of the team that is the secret of the webhook')
    .option('--delivery-id-header <name>', "header that has the sender's id of a delivery")
    .option('--delivery-id-path <path>', "member of the body that has the sender's id of a delivery, such as event.id")
    .option('--event-header <name>', 'header that names the event (default: the header of the scheme)')
    .option('--duplicate-window <seconds>', 'how long equal signed bytes count once (default: 300)', wholeNumberOrZero)
    .option(
      '--signature <json>',
      'how the sender signs with --scheme hmac, such as {"header": "X-Signature", "prefix": "sha256="}',
    )
    .option('--disabled', 'answer senders with 404 until it is enabled')
    .option(...asJson)
    .addHelpText(
      'after',
      '\nPrints UID, URL and secret, each on a line. docs/webhooks.md has a chapter for each kind of sender.',
    )
    .action(async (factory, name, options) =>
      createWebhook(...(await contextAndId('factory', factory)), name, options),
    );
  webhooks
    .command('show')
    .description('show a webhook as JSON, without its secret')
    .argument('<uid>', webhookHelp)
    .action((uid) => showWebhook(processContext(), uid));
  webhooks
    .command('update')
    .description('change a webhook')
    .argument('<uid>', webhookHelp)
    .option('--name <name>', 'name of the webhook')
    .option('--secret-name <name>', 'secret of the team that is the secret of the webhook')
    .option('--delivery-id-header <name>', "header that has the sender's id of a delivery")
    .option('--no-delivery-id-header', 'no header has the id')
    .option('--delivery-id-path <path>', "member of the body that has the sender's id of a delivery, such as event.id")
    .option('--no-delivery-id-path', 'the header of the scheme')
    .option('--event-header <name>', 'header that names the event')
    .option('--no-event-header', 'that of the scheme')
    .option('--duplicate-window <seconds>', 'how long equal signed bytes count once; 0: not at all', wholeNumberOrZero)
    .option('--signature <json>', 'how the sender signs, of a webhook with --scheme hmac')
    .action((uid, options) => updateWebhook(processContext(), uid, options));
  webhooks
    .command('rotate')
    .description('give a webhook a new secret; the old one stops working at once')
    .argument('<uid>', webhookHelp)
    .option('--secret-file <file>', 'file with the secret of the provider, - for standard input')
    .option('--grace <seconds>', 'how long the old secret is accepted too', wholeNumberOrZero)
    .option(...asJson)
    .action((uid, options) => rotateWebhook(processContext(), uid, options));
  for (const action of ['enable', 'disable'] as const)
    webhooks
      .command(action)
      .description(action === 'enable' ? 'take deliveries again' : 'answer senders with 404')
      .argument('<uid>', webhookHelp)
      .action((uid) => setWebhook(processContext(), action, uid));
  webhooks
    .command('delete')
    .description('delete a webhook with its log')
    .argument('<uid>', webhookHelp)
    .action((uid) => deleteWebhook(processContext(), uid));
  declareDeliveries(webhooks);
  declareListen(webhooks);
  declareSimulate(webhooks);
}
