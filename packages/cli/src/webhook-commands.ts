import { SignatureSchemeName, WebhookAuthMode } from '@runyard/contract/webhooks';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { listDeliveries, listenToWebhook, replayDelivery, showDelivery } from './commands/deliveries.ts';
import { simulateDelivery } from './commands/simulations.ts';
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  rotateWebhook,
  setWebhook,
  showWebhook,
  updateWebhook,
} from './commands/webhooks.ts';
import { createContext } from './context.ts';

const asJson = ['--json', 'print JSON'] as const;
const uidHelp = 'UID of the webhook; bin/runyard webhooks list shows it';
const factoryHelp = 'UID of the factory; bin/runyard factory list shows it';

function wholeNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** Adds the commands that manage webhooks. */
export function addWebhookCommands(program: Command): void {
  const webhooks = program.command('webhooks').description('manage URLs to which other systems POST deliveries');
  const context = () => createContext(process.env);
  webhooks
    .command('list', { isDefault: true })
    .description('list the webhooks of the team')
    .option(...asJson)
    .action((options) => listWebhooks(context(), options));
  webhooks
    .command('create')
    .description('create a webhook, and print its URL and its secret')
    .argument('<factory>', factoryHelp)
    .argument('<name>', 'name of the webhook')
    .addOption(new Option('--auth <mode>', 'how senders prove themselves').choices(WebhookAuthMode.options))
    .addOption(
      new Option('--scheme <scheme>', 'who signs; then --auth is signature').choices(SignatureSchemeName.options),
    )
    .option('--secret-file <file>', 'file with the secret of the provider, - for standard input')
    .option('--secret-name <name>', 'secret of the team that is the secret of the webhook')
    .option('--delivery-id-header <name>', "header with the sender's own id of a delivery")
    .option('--disabled', 'answer senders with 404 until it is enabled')
    .option(...asJson)
    .addHelpText(
      'after',
      '\nPrints UID, URL and secret, each on a line. docs/webhooks.md has a chapter for each kind of sender.',
    )
    .action((factory, name, options) => createWebhook(context(), factory, name, options));
  webhooks
    .command('show')
    .description('show a webhook as JSON, without its secret')
    .argument('<uid>', uidHelp)
    .action((uid) => showWebhook(context(), uid));
  webhooks
    .command('update')
    .description('change name, secret name or delivery id header of a webhook')
    .argument('<uid>', uidHelp)
    .option('--name <name>', 'name of the webhook')
    .option('--secret-name <name>', 'secret of the team that is the secret of the webhook')
    .option('--delivery-id-header <name>', "header with the sender's own id of a delivery")
    .option('--no-delivery-id-header', 'no such header any more')
    .action((uid, options) => updateWebhook(context(), uid, options));
  webhooks
    .command('rotate')
    .description('give a webhook a new secret; the old one stops working at once')
    .argument('<uid>', uidHelp)
    .option('--secret-file <file>', 'file with the secret of the provider, - for standard input')
    .option('--grace <seconds>', 'how long the old secret is accepted too', wholeNumber)
    .option(...asJson)
    .action((uid, options) => rotateWebhook(context(), uid, options));
  for (const action of ['enable', 'disable'] as const)
    webhooks
      .command(action)
      .description(action === 'enable' ? 'take deliveries again' : 'answer senders with 404')
      .argument('<uid>', uidHelp)
      .action((uid) => setWebhook(context(), action, uid));
  webhooks
    .command('delete')
    .description('delete a webhook with its log')
    .argument('<uid>', uidHelp)
    .action((uid) => deleteWebhook(context(), uid));
  webhooks
    .command('deliveries')
    .description('list deliveries, newest first, and why they started nothing')
    .argument('<uid>', uidHelp)
    .option('--limit <count>', 'how many, at most 100 (default: 20)', wholeNumber)
    .option('--label <label>', 'only deliveries with this label, such as REJECTED_AUTH')
    .option(...asJson)
    .action((uid, options) => listDeliveries(context(), uid, options));
  webhooks
    .command('delivery')
    .description('show a delivery, what each automation made of it and why, and its payload')
    .argument('<uid>', uidHelp)
    .argument('<delivery>', 'id of the delivery')
    .option(...asJson)
    .action((uid, delivery, options) => showDelivery(context(), uid, delivery, options));
  webhooks
    .command('replay')
    .description('evaluate an accepted delivery again')
    .argument('<uid>', uidHelp)
    .argument('<delivery>', 'id of the delivery')
    .action((uid, delivery) => replayDelivery(context(), uid, delivery));
  webhooks
    .command('listen')
    .description('POST each delivery that is accepted from now on to a program on this machine, until Ctrl-C')
    .argument('<uid>', uidHelp)
    .requiredOption('--to <url>', 'address of the program, such as http://127.0.0.1:3000/hook')
    .action((uid, options) => listenToWebhook(context(), uid, options));
  webhooks
    .command('simulate')
    .description('show what a delivery would start, and why not; nothing is created')
    .argument('<uid>', uidHelp)
    .option('--payload <file>', 'JSON file with the payload, - for standard input')
    .option('--delivery <id>', 'id of an accepted delivery')
    .option('--event <name>', 'event of GitHub, such as push, with --payload')
    .option('--json', 'print JSON')
    .action((uid, options) => simulateDelivery(context(), uid, options));
}
