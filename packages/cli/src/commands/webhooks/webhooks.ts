/** Webhooks: URLs to which other systems send deliveries. */
import { unsignedSchemeNames } from '@runyard/contract/wire/choices';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson, factoryHelp, webhookHelp } from '../../input/options.ts';
import { type Members, type Row, request } from '../../route-commands/row.ts';
import { connect } from '../../service/connect.ts';
import { allWebhooks, findWebhook, idOf } from '../../service/named.ts';
import type { Column } from '../../terminal/columns.ts';
import { printList } from '../../terminal/list.ts';
import { declareDelivery, deliveryColumns } from './deliveries.ts';
import { declareListen } from './listen.ts';
import { linesWithSecret, notesOnSecret, secretFrom } from './secret.ts';
import { simulate } from './simulate.ts';

const secretFile = {
  member: 'secret',
  help: 'file with the secret of the provider, - for standard input',
  read: secretFrom,
} as const;
const secretName = { member: 'secret_name', help: 'secret of the team that is the secret of the webhook' } as const;

/** Flags that define how the service reads the deliveries. */
const ruleFlags = {
  '--delivery-id-header <name>': {
    member: 'delivery_id_header',
    help: "header that has the sender's id of a delivery",
  },
  '--delivery-id-path <path>': {
    member: 'delivery_id_path',
    help: "member of the body that has the sender's id of a delivery, such as event.id",
  },
  '--event-header <name>': {
    member: 'event_header',
    help: 'header that names the event, in place of the header of the scheme',
  },
  '--duplicate-window <seconds>': {
    member: 'duplicate_window_seconds',
    help: 'time in which equal signed bytes count as one delivery, at first 300; 0: each counts',
  },
  '--signature <json>': {
    member: 'signature',
    help: 'how the sender signs with --scheme hmac, such as {"header": "X-Signature", "prefix": "sha256="}',
    read: (text: string | undefined) => (text === undefined ? undefined : signatureFrom(text)),
  },
} as const;

function signatureFrom(text: string): unknown {
  try {
    // The members are not checked here, because the service checks them.
    return JSON.parse(text);
  } catch {
    throw new Failure('--signature: it must be JSON, such as {"header": "X-Signature", "prefix": "sha256="}');
  }
}

/** Adds the way in which a sender with this scheme proves itself, unless `--auth` names another way. */
function withAuthMode(members: Members): Members {
  const { auth_mode, signature_scheme: scheme } = members;
  if (auth_mode !== undefined || scheme === undefined) return members;
  const isUnsigned = unsignedSchemeNames.some((name) => name === scheme);
  return { ...members, auth_mode: isUnsigned ? 'url_token' : 'signature' };
}

const webhook = { usage: '<uid>', help: webhookHelp, find: findWebhook };

/** Lists the webhooks of the team. */
export async function listWebhooks(context: Context, options: { readonly json?: true }): Promise<void> {
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

/** Declares `list` of `webhooks`. */
function declareList(webhooks: Command): void {
  webhooks
    .command('list', { isDefault: true })
    .description('list the webhooks of the team')
    .option(...asJson)
    .action((options) => listWebhooks(processContext(), options));
}

/** The commands of `webhooks`. */
export const webhooks: readonly Row[] = [
  declareList,
  request('createWebhook', 'create', 'create a webhook, and print its URL and its secret', {
    arguments: [
      { usage: '<factory>', help: factoryHelp, find: idOf.factory },
      { usage: '<name>', help: 'name of the webhook', member: 'name' },
    ],
    flags: {
      '--auth <mode>': { member: 'auth_mode', help: 'how senders prove themselves' },
      '--scheme <scheme>': {
        member: 'signature_scheme',
        help: 'the sender; then --auth is signature, or url_token for senders without signatures',
      },
      '--secret-file <file>': secretFile,
      '--secret-name <name>': secretName,
      ...ruleFlags,
      '--disabled': { member: 'enabled', value: false, help: 'answer senders with 404 until it is enabled' },
    },
    complete: withAuthMode,
    helpBelow: '\nPrints UID, URL and secret, each on a line. docs/webhooks.md has a chapter for each kind of sender.',
    orJson: true,
    lines: linesWithSecret,
    notes: notesOnSecret,
  }),
  request('getWebhook', 'show', 'show a webhook as JSON, without its secret', { arguments: [webhook] }),
  request('updateWebhook', 'update', 'change a webhook', {
    arguments: [webhook],
    flags: {
      '--name <name>': { member: 'name', help: 'name of the webhook' },
      '--secret-name <name>': secretName,
      ...ruleFlags,
      '--no-delivery-id-header': { member: 'delivery_id_header', help: 'no header has the id' },
      '--no-delivery-id-path': { member: 'delivery_id_path', help: 'the header of the scheme has the id' },
      '--no-event-header': { member: 'event_header', help: 'the header of the scheme names the event' },
    },
    complete: (members) => {
      if (Object.keys(members).length > 0) return members;
      throw new Failure('set at least one option, such as --name or --secret-name; --help lists all');
    },
    lines: (_, { webhookUid }) => `${webhookUid} is changed`,
  }),
  request('rotateWebhookSecret', 'rotate', 'give a webhook a new secret; the old one stops working at once', {
    arguments: [webhook],
    flags: {
      '--secret-file <file>': secretFile,
      '--grace <seconds>': 'grace_seconds',
    },
    orJson: true,
    lines: linesWithSecret,
    notes: notesOnSecret,
  }),
  request('enableWebhook', 'enable', 'take deliveries again', {
    arguments: [webhook],
    lines: (_, { webhookUid }) => `${webhookUid} is enabled`,
  }),
  request('disableWebhook', 'disable', 'answer senders with 404', {
    arguments: [webhook],
    lines: (_, { webhookUid }) => `${webhookUid} is disabled`,
  }),
  request('deleteWebhook', 'delete', 'delete a webhook with its log', {
    arguments: [webhook],
    lines: (_, { webhookUid }) => `${webhookUid} is deleted`,
  }),
  request('listWebhookDeliveries', 'deliveries', 'list deliveries, newest first, and why they started nothing', {
    arguments: [webhook],
    flags: {
      '--limit <count>': 'limit',
      '--label <label>': { member: 'label', help: 'only deliveries with this label' },
    },
    list: {
      of: 'deliveries',
      columns: deliveryColumns,
      none: 'no deliveries; requests that got 404 or 429 are not logged',
    },
  }),
  declareDelivery,
  request('replayWebhookDelivery', 'replay', 'evaluate an accepted delivery again', {
    arguments: [webhook, { usage: '<delivery>', help: 'id of the delivery' }],
    lines: ({ delivery_id }) => delivery_id,
  }),
  declareListen,
  simulate,
];
