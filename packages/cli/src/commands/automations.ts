/** Manages automations. */
import type { Automation, CreateAutomationRequest } from '@runyard/contract/automations/automations';
import type { ScheduleFire } from '@runyard/contract/schedules/schedules';
import { allFactories } from '../all-factories.ts';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { jsonFrom } from '../json-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { pickNamed } from '../named.ts';
import { inUtc, printFires } from './fires.ts';

type Json = { readonly json?: true };
type Client = ReturnType<typeof connect>;

async function allAutomations(client: Client): Promise<(Automation & { readonly factoryUid: string })[]> {
  const found: (Automation & { readonly factoryUid: string })[] = [];
  for (const { uid: factoryUid } of await allFactories(client)) {
    const { automations } = await client.listAutomations({ params: { factoryUid } });
    found.push(...automations.map((automation) => ({ ...automation, factoryUid })));
  }
  return found;
}

/** Finds an automation by its UID or name, with its factory. */
export async function findAutomation(
  client: Client,
  wanted: string,
): Promise<Automation & { readonly factoryUid: string }> {
  const automations = (await allAutomations(client)).map((each) => ({ ...each, id: each.uid }));
  const { id: _, ...found } = pickNamed(automations, wanted, {
    one: 'automation',
    several: 'automations',
    list: 'automations list',
  });
  return found;
}

function statusOf({ enabled, problems, last_spawn_error: error }: Automation): string {
  if (!enabled) return error ? 'paused' : 'disabled';
  if (error) return 'failing';
  return problems ? 'has problems' : 'enabled';
}

/** Returns the next time of an automation; an empty text if it has none. */
function nextOf({ schedules = [] }: Automation): string {
  const times = schedules.flatMap(({ next_run: time }) => time ?? []);
  return times.toSorted()[0] ?? '';
}

/** Lists the automations of the team. */
export async function listAutomations(context: Context, options: Json): Promise<void> {
  const automations = await allAutomations(connect(context));
  const columns: Column<(typeof automations)[number]>[] = [
    { header: 'AUTOMATION', text: ({ uid }) => uid },
    { header: 'FACTORY', text: ({ factoryUid }) => factoryUid },
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
export async function showAutomation(context: Context, uid: string): Promise<void> {
  const { factoryUid, ...automation } = await findAutomation(connect(context), uid);
  context.out(`${harmlessJson(automation)}\n`);
}

/** Explains why an automation that was stored does not fire. */
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

/** Enables or disables an automation. Its runs act as the caller from then on, as after every change. */
export async function setAutomation(context: Context, action: 'enable' | 'disable', uid: string): Promise<void> {
  const client = connect(context);
  const {
    factoryUid,
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

/** Replaces an automation by the JSON of a request. Its runs act as the caller from now on. */
export async function updateAutomation(context: Context, uid: string, file: string): Promise<void> {
  const body = jsonFrom(file) as CreateAutomationRequest;
  const client = connect(context);
  const { factoryUid, uid: automationUid } = await findAutomation(client, uid);
  const updated = await client.updateAutomation({ params: { factoryUid, automationUid }, body });
  context.out(`${updated.uid} is changed\n`);
  reportProblems(context, updated);
}

/** Lists the fires of the schedule triggers of an automation, newest first. */
export async function listAutomationFires(
  context: Context,
  uid: string,
  options: Json & { readonly limit?: number },
): Promise<void> {
  const client = connect(context);
  const { factoryUid, uid: automationUid } = await findAutomation(client, uid);
  const query = options.limit === undefined ? {} : { limit: options.limit };
  const found = await client.listAutomationFires({ params: { factoryUid, automationUid }, query });
  const schedule = { header: 'SCHEDULE', text: (fire: ScheduleFire) => fire.schedule_name ?? '' };
  printFires(context, found, schedule, options);
}

/** Deletes an automation. */
export async function deleteAutomation(context: Context, uid: string): Promise<void> {
  const client = connect(context);
  const { factoryUid, uid: automationUid } = await findAutomation(client, uid);
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
