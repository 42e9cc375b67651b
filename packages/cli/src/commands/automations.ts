/** Manages automations. */
import { readFileSync } from 'node:fs';
import type { Automation, CreateAutomationRequest } from '@runyard/contract/automations';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { allFactories } from './factories.ts';

type Json = { readonly json?: true };
type Client = ReturnType<typeof connect>;

/** Reads JSON from a file, or from standard input for `-`. The service checks it. */
export function jsonFrom(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
  } catch (error) {
    throw new Failure(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function allAutomations(client: Client): Promise<(Automation & { readonly factoryUid: string })[]> {
  const found: (Automation & { readonly factoryUid: string })[] = [];
  for (const { uid: factoryUid } of await allFactories(client)) {
    const { automations } = await client.listAutomations({ params: { factoryUid } });
    found.push(...automations.map((automation) => ({ ...automation, factoryUid })));
  }
  return found;
}

/** Finds the factory of an automation. */
export async function findAutomation(
  client: Client,
  uid: string,
): Promise<Automation & { readonly factoryUid: string }> {
  const found = (await allAutomations(client)).find((each) => each.uid === uid);
  if (!found) throw new Failure('there is no such automation; see: bin/runyard automations list');
  return found;
}

/** Lists the automations of the team. */
export async function listAutomations(context: Context, options: Json): Promise<void> {
  const automations = await allAutomations(connect(context));
  const columns: Column<(typeof automations)[number]>[] = [
    { header: 'AUTOMATION', text: ({ uid }) => uid },
    { header: 'FACTORY', text: ({ factoryUid }) => factoryUid },
    {
      header: 'STATUS',
      text: ({ enabled, problems }) => (enabled ? (problems ? 'has problems' : 'enabled') : 'disabled'),
      paint: ({ enabled, problems }, colours) => (enabled && !problems ? colours.green : colours.yellow),
    },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
  ];
  const none = 'no automations; create one with: bin/runyard automations create FACTORY FILE';
  printList(context, { columns, rows: automations, json: { automations }, none }, options);
}

/** Shows an automation as JSON. */
export async function showAutomation(context: Context, uid: string): Promise<void> {
  const { factoryUid, ...automation } = await findAutomation(connect(context), uid);
  context.out(`${harmlessJson(automation)}\n`);
}

/** Creates an automation from the JSON of a request, and prints its UID. */
export async function createAutomation(context: Context, factoryUid: string, file: string): Promise<void> {
  const body = jsonFrom(file) as CreateAutomationRequest;
  const { uid } = await connect(context).createAutomation({ params: { factoryUid }, body });
  context.out(`${uid}\n`);
}

/** Enables or disables an automation. Its runs act as the caller from then on, as after every change. */
export async function setAutomation(context: Context, action: 'enable' | 'disable', uid: string): Promise<void> {
  const client = connect(context);
  const { factoryUid, name, prompt, triggers, config, overlap, concurrency_key } = await findAutomation(client, uid);
  await client.updateAutomation({
    params: { factoryUid, automationUid: uid },
    body: {
      name,
      prompt,
      triggers,
      overlap,
      enabled: action === 'enable',
      ...(config === undefined ? {} : { config }),
      ...(concurrency_key === undefined ? {} : { concurrency_key }),
    },
  });
  context.out(`${uid} is ${action}d\n`);
}

/** Deletes an automation. */
export async function deleteAutomation(context: Context, uid: string): Promise<void> {
  const client = connect(context);
  const { factoryUid } = await findAutomation(client, uid);
  await client.deleteAutomation({ params: { factoryUid, automationUid: uid } });
  context.out(`${uid} is deleted\n`);
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
