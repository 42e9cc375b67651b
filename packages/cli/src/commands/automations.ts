/** Manages automations. */
import type { Automation, CreateAutomationRequest } from '@runyard/contract/automations/automations';
import type { ScheduleFire } from '@runyard/contract/schedules/schedules';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import { jsonFrom } from '../json-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { allAutomations, contextAndId, findAutomation } from '../named.ts';
import { asJson, automationHelp, factoryHelp, wholeNumber } from '../options.ts';
import { inUtc, printFires } from './fires.ts';
import { reportWaiting } from './report-waiting.ts';
import { declareDryRun } from './simulations.ts';

type Json = { readonly json?: true };

function statusOf({ enabled, problems, last_spawn_error: error }: Automation): string {
  if (!enabled) return error ? 'paused' : 'disabled';
  if (error) return 'failing';
  return problems ? 'has problems' : 'enabled';
}

/** Returns the next time at which a schedule of the automation fires. Returns an empty text if there is none. */
function nextOf({ schedules = [] }: Automation): string {
  const times = schedules.flatMap(({ next_run: time }) => time ?? []);
  return times.toSorted()[0] ?? '';
}

/** Lists the automations of the team. */
export async function listAutomations(context: Context, options: Json): Promise<void> {
  const automations = await allAutomations(connect(context));
  const columns: Column<(typeof automations)[number]>[] = [
    { header: 'AUTOMATION', text: ({ uid }) => uid },
    { header: 'FACTORY', text: ({ factory_uid: uid }) => uid },
    {
      header: 'STATUS',
      text: statusOf,
      paint: (automation, colours) =>
        automation.last_spawn_error ? colours.red : statusOf(automation) === 'enabled' ? colours.green : colours.yellow,
    },
    { header: 'NEXT', text: (automation) => inUtc(nextOf(automation)), raw: nextOf },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
    {
      header: 'PROBLEM',
      sentence: true,
      text: ({ last_spawn_error: error, problems }) => error ?? problems?.[0] ?? '',
    },
  ];
  const none = 'no automations; create one with: bin/runyard automations create FACTORY FILE';
  printList(context, { columns, rows: automations, json: { automations }, none }, options);
}

/** Shows an automation as JSON. */
async function showAutomation(context: Context, uid: string): Promise<void> {
  const { factory_uid: factoryUid, ...automation } = await findAutomation(connect(context), uid);
  context.out(`${harmlessJson(automation)}\n`);
}

/** Prints the reasons for which a stored automation does not fire. */
function reportProblems(context: Context, { problems = [] }: Automation): void {
  for (const problem of problems) context.report(harmlessLine(`problem: ${problem}`, 1_000));
}

/** Creates an automation from the JSON of a request, and prints its UID. */
export async function createAutomation(context: Context, factoryUid: string, file: string): Promise<void> {
  const body = jsonFrom(file) as CreateAutomationRequest;
  const created = await connect(context).createAutomation({ params: { factoryUid }, body });
  context.out(`${created.uid}\n`);
  reportProblems(context, created);
}

/** Enables or disables an automation. After this, as after every change, runs of the automation act as the caller. */
async function setAutomation(context: Context, action: 'enable' | 'disable', uid: string): Promise<void> {
  const client = connect(context);
  const {
    factory_uid: factoryUid,
    uid: automationUid,
    name,
    prompt,
    triggers,
    agent,
    config,
    overlap,
    concurrency_key,
  } = await findAutomation(client, uid);
  await client.updateAutomation({
    params: { factoryUid, automationUid },
    body: {
      name,
      prompt,
      triggers,
      overlap,
      enabled: action === 'enable',
      ...(agent === undefined ? {} : { agent }),
      ...(config === undefined ? {} : { config }),
      ...(concurrency_key === undefined ? {} : { concurrency_key }),
    },
  });
  context.out(`${automationUid} is ${action}d\n`);
}

/** Replaces an automation by the JSON of a request. Its executor stays unless the request has `executor_uid`. */
export async function updateAutomation(context: Context, uid: string, file: string): Promise<void> {
  const body = jsonFrom(file) as CreateAutomationRequest;
  const client = connect(context);
  const { factory_uid: factoryUid, uid: automationUid } = await findAutomation(client, uid);
  const updated = await client.updateAutomation({ params: { factoryUid, automationUid }, body });
  context.out(`${updated.uid} is changed\n`);
  reportProblems(context, updated);
  reportWaiting(context, updated.waiting);
}

/** Lists the fires of the schedule triggers of an automation, newest first. */
export async function listAutomationFires(
  context: Context,
  uid: string,
  options: Json & { readonly limit?: number },
): Promise<void> {
  const client = connect(context);
  const { factory_uid: factoryUid, uid: automationUid } = await findAutomation(client, uid);
  const query = options.limit === undefined ? {} : { limit: options.limit };
  const found = await client.listAutomationFires({ params: { factoryUid, automationUid }, query });
  const schedule = { header: 'SCHEDULE', text: (fire: ScheduleFire) => fire.schedule_name ?? '' };
  printFires(context, found, schedule, options);
}

/** Deletes an automation. */
export async function deleteAutomation(context: Context, uid: string): Promise<void> {
  const client = connect(context);
  const { factory_uid: factoryUid, uid: automationUid } = await findAutomation(client, uid);
  await client.deleteAutomation({ params: { factoryUid, automationUid } });
  context.out(`${automationUid} is deleted\n`);
}

/** Compares a payload filter with a payload or a stored delivery, and prints each condition. */
export async function testFilter(
  context: Context,
  factoryUid: string,
  file: string,
  { payload, delivery }: { readonly payload?: string; readonly delivery?: string },
): Promise<void> {
  if ((payload === undefined) === (delivery === undefined)) throw new Failure('give one of --payload and --delivery');
  const { would_trigger, checks } = await connect(context).testFilter({
    params: { factoryUid },
    body: {
      filter: jsonFrom(file),
      ...(payload === undefined ? { delivery_id: delivery } : { payload: jsonFrom(payload) }),
    },
  });
  context.out(would_trigger ? 'matches\n' : 'does not match\n');
  for (const { passed, path, reason } of checks)
    context.out(`${harmlessLine(`${passed ? '+' : '-'} ${path === undefined ? '' : `${path}: `}${reason}`)}\n`);
}

const exampleHelp = `
For example, with the UID of a webhook:
  {"name": "Alerts", "prompt": "Look into attachments/event-payload.json.",
   "triggers": [{"provider": "webhook", "event": "received",
     "filter": {"webhook_ids": ["UID"], "payload": {"status": ["firing"]}}}]}
or at times: {"provider": "schedule", "event": "cron_fired", "schedule": {"name": "nightly", "cron": "0 3 * * *"}}
docs/factory-files.md has all triggers and filters, and the API reference all members.`;

const updateHelp = `
Members that the file leaves out get their defaults. bin/runyard automations show UID prints the present members: take name, prompt and triggers from it, and agent, config, overlap, concurrency_key and enabled if it has them.
Its runs act as before; with "executor_uid": "me" you take it over.
`;

const filterHelp = `
The file has the member payload of a trigger's filter, such as {"status": ["firing"]}. Give the payload as a file, or a delivery:
  echo '{"status": ["firing"]}' | bin/runyard automations test-filter FACTORY - --payload payload.json
docs/factory-files.md explains payload filters.`;

/** Declares the command `automations`. */
export function declareAutomations(automations: Command): void {
  automations
    .command('list', { isDefault: true })
    .description('list the automations of the team')
    .option(...asJson)
    .action((options) => listAutomations(processContext(), options));
  automations
    .command('show')
    .description('show an automation as JSON')
    .argument('<uid>', automationHelp)
    .action((uid) => showAutomation(processContext(), uid));
  automations
    .command('create')
    .description('create an automation, and print its UID')
    .argument('<factory>', factoryHelp)
    .argument('<file>', 'JSON file with name, prompt and triggers, - for standard input')
    .addHelpText('after', exampleHelp)
    .action(async (factory, file) => createAutomation(...(await contextAndId('factory', factory)), file));
  automations
    .command('update')
    .description('replace an automation; its runs act as before')
    .argument('<uid>', automationHelp)
    .argument('<file>', 'JSON file with all members, - for standard input')
    .addHelpText('after', `${updateHelp}${exampleHelp}`)
    .action((uid, file) => updateAutomation(processContext(), uid, file));
  automations
    .command('history')
    .description('list the times at which its schedules fired, newest first')
    .argument('<uid>', automationHelp)
    .option('--limit <count>', 'how many, at most 100 (default: 20)', wholeNumber)
    .option(...asJson)
    .action((uid, options) => listAutomationFires(processContext(), uid, options));
  for (const action of ['enable', 'disable'] as const)
    automations
      .command(action)
      .description(action === 'enable' ? 'start runs again, as you' : 'start no more runs')
      .argument('<uid>', automationHelp)
      .action((uid) => setAutomation(processContext(), action, uid));
  automations
    .command('delete')
    .description('delete an automation; its runs stay')
    .argument('<uid>', automationHelp)
    .action((uid) => deleteAutomation(processContext(), uid));
  automations
    .command('test-filter')
    .description('compare a payload filter with a payload, and print why it matches or not')
    .argument('<factory>', factoryHelp)
    .argument('<file>', 'JSON file with the filter, - for standard input')
    .option('--payload <file>', 'JSON file with the payload')
    .option('--delivery <id>', 'id of an accepted delivery; bin/runyard webhooks deliveries lists them')
    .addHelpText('after', filterHelp)
    .action(async (factory, file, options) => testFilter(...(await contextAndId('factory', factory)), file, options));
  declareDryRun(automations);
}
