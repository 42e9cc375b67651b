/** Shows which runs a delivery or a schedule would start. Creates nothing. */
import type { SimulatedStart } from '@runyard/contract/webhooks/simulations';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import { jsonFrom } from '../json-file.ts';
import { harmless, harmlessJson, harmlessLine } from '../live/harmless.ts';
import { findAutomation, findWebhook } from '../named.ts';
import { asJson, automationHelp, webhookHelp } from '../options.ts';

/** Maximum number of characters of a line. The limit is high, because a refusal may name several members of the request. */
const maxLine = 2_000;

interface SimulationOptions {
  readonly payload?: string;
  readonly delivery?: string;
  readonly event?: string;
  readonly json?: true;
}

function bodyOf({ payload, delivery, event }: SimulationOptions) {
  if ((payload === undefined) === (delivery === undefined)) throw new Failure('give one of --payload and --delivery');
  return {
    ...(payload === undefined ? { delivery_id: delivery } : { payload: jsonFrom(payload) }),
    ...(event === undefined ? {} : { event }),
  };
}

/** Prints an automation: `+` and the prompt if a run would start, `-` and the reason if no run would start. */
function show(
  context: Context,
  { automation_id: uid, name, matched, reason, refusals = [], run }: SimulatedStart,
): void {
  const line = (text: string) => context.out(`${harmlessLine(text, maxLine)}\n`);
  if (!matched) line(`- ${uid} ${name}: ${reason ?? 'does not match'}`);
  else line(refusals.length > 0 ? `- ${uid} ${name}: ${refusals.join('; ')}` : `+ ${uid} ${name}: would start a run`);
  for (const text of run?.prompt.split('\n') ?? []) context.out(`    ${harmless(text)}\n`);
}

/** Shows which runs a delivery to a webhook would start. */
export async function simulateDelivery(context: Context, uid: string, options: SimulationOptions): Promise<void> {
  const client = connect(context);
  const body = bodyOf(options);
  const answer = await client.simulateDelivery({ params: await findWebhook(client, uid), body });
  if (options.json) return void context.out(`${harmlessJson(answer)}\n`);
  if (!answer.would_accept) context.report('the webhook is disabled: its senders get 404');
  if (answer.automations.length === 0) context.out('no automation selects the webhook\n');
  for (const each of answer.automations) show(context, each);
}

interface DryRunOptions extends SimulationOptions {
  readonly webhook?: string;
  /** Name of a schedule trigger. True means the trigger without a name. */
  readonly schedule?: string | true;
}

function dryRunOf({ webhook, schedule, ...options }: DryRunOptions) {
  const { payload, delivery, event } = options;
  if (schedule === undefined) {
    if ((payload === undefined) === (delivery === undefined))
      throw new Failure('give one of --payload, --delivery and --schedule');
    return { ...bodyOf(options), ...(webhook === undefined ? {} : { webhook_uid: webhook }) };
  }
  if ([payload, delivery, event, webhook].some((each) => each !== undefined))
    throw new Failure('--schedule cannot be combined with --payload and --delivery, which are about deliveries');
  return { schedule_name: schedule === true ? '' : schedule };
}

/** Shows the run that an automation would start for a delivery, or at a time of a schedule. */
export async function dryRunAutomation(context: Context, uid: string, options: DryRunOptions): Promise<void> {
  const client = connect(context);
  const body = dryRunOf(options);
  const { factory_uid: factoryUid, uid: automationUid } = await findAutomation(client, uid);
  const answer = await client.dryRunAutomation({ params: { factoryUid, automationUid }, body });
  if (options.json) return void context.out(`${harmlessJson(answer)}\n`);
  show(context, answer);
}

/** Declares `simulate` of `webhooks`. */
export function declareSimulate(webhooks: Command): void {
  webhooks
    .command('simulate')
    .description('show the runs that a delivery would start, or the reason why it starts none; creates nothing')
    .argument('<uid>', webhookHelp)
    .option('--payload <file>', 'JSON file with the payload, - for standard input')
    .option('--delivery <id>', 'id of an accepted delivery')
    .option('--event <name>', 'event, as the header of the sender names it, such as push of GitHub; with --payload')
    .option(...asJson)
    .action((uid, options) => simulateDelivery(processContext(), uid, options));
}

/** Declares `dry-run` of `automations`. */
export function declareDryRun(automations: Command): void {
  automations
    .command('dry-run')
    .description(
      'show the run that a delivery or a schedule would start, or the reason why it would start none; creates nothing',
    )
    .argument('<uid>', automationHelp)
    .option('--payload <file>', 'JSON file with the payload, - for standard input')
    .option('--delivery <id>', 'id of an accepted delivery')
    .option('--event <name>', 'event of GitHub, such as push, with --payload')
    .option('--webhook <uid>', 'webhook of the delivery (default: the first that a trigger selects)')
    .option(
      '--schedule [name]',
      'a time of the schedule trigger with this name, or of the schedule trigger without a name',
    )
    .option(...asJson)
    .action((uid, options) => dryRunAutomation(processContext(), uid, options));
}
