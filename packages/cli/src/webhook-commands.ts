import { signatureSchemeNames, webhookAuthModes } from '@runyard/contract/wire/choices';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { loadContext, loadNamed } from './load-context.ts';

const loadDeliveries = () => import('./commands/deliveries.ts');
const loadListen = () => import('./commands/webhook-listen.ts');
const loadWebhooks = () => import('./commands/webhooks.ts');
const loadSimulations = () => import('./commands/simulations.ts');

const asJson = ['--json', 'print JSON'] as const;
const uidHelp = 'UID or name of the webhook; bin/runyard webhooks list shows them';
const factoryHelp = 'UID, alias or name of the factory; bin/runyard factory list shows them';

function wholeNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** Adds the commands that manage webhooks. */
export function addWebhookCommands(program: Command): void {
  const webhooks = program.command('webhooks').description('manage URLs to which other systems POST deliveries');
  webhooks
    .command('list', { isDefault: true })
    .description('list the webhooks of the team')
    .option(...asJson)
    .action(async (options) => (await loadWebhooks()).listWebhooks(await loadContext(), options));
  webhooks
    .command('create')
    .description('create a webhook, and print its URL and its secret')
    .argument('<factory>', factoryHelp)
    .argument('<name>', 'name of the webhook')
    .addOption(new Option('--auth <mode>', 'how senders prove themselves').choices(webhookAuthModes))
    .addOption(
      new Option(
        '--scheme <scheme>',
        'who sends; then --auth is signature, or url_token for senders that sign nothing',
      ).choices(signatureSchemeNames),
    )
    .option('--secret-file <file>', 'file with the secret of the provider, - for standard input')
    .option('--secret-name <name>', 'secret of the team that is the secret of the webhook')
    .option('--delivery-id-header <name>', "header with the sender's own id of a delivery")
    .option('--delivery-id-path <path>', "member of the body with the sender's own id of a delivery, such as event.id")
    .option('--event-header <name>', 'header that names the event (default: that of the scheme)')
    .option('--duplicate-window <seconds>', 'how long equal signed bytes count once (default: 300)', wholeNumber)
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
      (await loadWebhooks()).createWebhook(...(await loadNamed('factory', factory)), name, options),
    );
  webhooks
    .command('show')
    .description('show a webhook as JSON, without its secret')
    .argument('<uid>', uidHelp)
    .action(async (uid) => (await loadWebhooks()).showWebhook(await loadContext(), uid));
  webhooks
    .command('update')
    .description('change a webhook')
    .argument('<uid>', uidHelp)
    .option('--name <name>', 'name of the webhook')
    .option('--secret-name <name>', 'secret of the team that is the secret of the webhook')
    .option('--delivery-id-header <name>', "header with the sender's own id of a delivery")
    .option('--no-delivery-id-header', 'no such header any more')
    .option('--delivery-id-path <path>', "member of the body with the sender's own id of a delivery, such as event.id")
    .option('--no-delivery-id-path', 'that of the scheme')
    .option('--event-header <name>', 'header that names the event')
    .option('--no-event-header', 'that of the scheme')
    .option('--duplicate-window <seconds>', 'how long equal signed bytes count once; 0: not at all', wholeNumber)
    .option('--signature <json>', 'how the sender signs, of a webhook with --scheme hmac')
    .action(async (uid, options) => (await loadWebhooks()).updateWebhook(await loadContext(), uid, options));
  webhooks
    .command('rotate')
    .description('give a webhook a new secret; the old one stops working at once')
    .argument('<uid>', uidHelp)
    .option('--secret-file <file>', 'file with the secret of the provider, - for standard input')
    .option('--grace <seconds>', 'how long the old secret is accepted too', wholeNumber)
    .option(...asJson)
    .action(async (uid, options) => (await loadWebhooks()).rotateWebhook(await loadContext(), uid, options));
  for (const action of ['enable', 'disable'] as const)
    webhooks
      .command(action)
      .description(action === 'enable' ? 'take deliveries again' : 'answer senders with 404')
      .argument('<uid>', uidHelp)
      .action(async (uid) => (await loadWebhooks()).setWebhook(await loadContext(), action, uid));
  webhooks
    .command('delete')
    .description('delete a webhook with its log')
    .argument('<uid>', uidHelp)
    .action(async (uid) => (await loadWebhooks()).deleteWebhook(await loadContext(), uid));
  webhooks
    .command('deliveries')
    .description('list deliveries, newest first, and why they started nothing')
    .argument('<uid>', uidHelp)
    .option('--limit <count>', 'how many, at most 100 (default: 20)', wholeNumber)
    .option('--label <label>', 'only deliveries with this label, such as REJECTED_AUTH')
    .option(...asJson)
    .action(async (uid, options) => (await loadDeliveries()).listDeliveries(await loadContext(), uid, options));
  webhooks
    .command('delivery')
    .description('show a delivery with its payload, and the outcome and reason of each automation')
    .argument('<uid>', uidHelp)
    .argument('<delivery>', 'id of the delivery')
    .option(...asJson)
    .action(async (uid, delivery, options) =>
      (await loadDeliveries()).showDelivery(await loadContext(), uid, delivery, options),
    );
  webhooks
    .command('replay')
    .description('evaluate an accepted delivery again')
    .argument('<uid>', uidHelp)
    .argument('<delivery>', 'id of the delivery')
    .action(async (uid, delivery) => (await loadDeliveries()).replayDelivery(await loadContext(), uid, delivery));
  webhooks
    .command('listen')
    .description(
      'POST each delivery that is accepted from now on, as it came, to a program on this machine, until Ctrl-C',
    )
    .argument('<uid>', uidHelp)
    .requiredOption('--to <url>', 'address of the program, such as http://127.0.0.1:3000/hook')
    .option(
      '--secret-file <file>',
      'file with the secret that signs them, - for standard input (default: a new one, which is printed)',
    )
    .addHelpText(
      'after',
      '\nThe body has the bytes that came in, with the headers that name the event. The signature is a new one, in the scheme of the\nwebhook, because the one that came in may be too old by now. With --auth token or url_token it is a bearer token instead.',
    )
    .action(async (uid, options) => (await loadListen()).listenToWebhook(await loadContext(), uid, options));
  webhooks
    .command('simulate')
    .description('show the runs that a delivery would start, or why it would not; nothing is created')
    .argument('<uid>', uidHelp)
    .option('--payload <file>', 'JSON file with the payload, - for standard input')
    .option('--delivery <id>', 'id of an accepted delivery')
    .option('--event <name>', 'event, as the header of the sender names it, such as push of GitHub; with --payload')
    .option('--json', 'print JSON')
    .action(async (uid, options) => (await loadSimulations()).simulateDelivery(await loadContext(), uid, options));
}
