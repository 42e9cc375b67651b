/** Finds things by the text that a person types: an id, or a unique name. */
import type { Client } from '@runyard/client';
import type { Automation } from '@runyard/contract/automations/automations';
import type { Factory } from '@runyard/contract/factories/factories';
import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { type Context, processContext } from '../context/context.ts';
import { Failure } from '../exits/failure.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import { connect } from './connect.ts';

interface Named {
  readonly id: string;
  readonly name: string;
}

/** How messages name a kind of thing, and the command that lists things of this kind. */
interface Kind {
  readonly one: string;
  readonly several: string;
  readonly list: string;
}

const uid = /^[A-Za-z0-9]{22}$/;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const mostCandidates = 10;

/**
 * Returns the thing with this id or, if there is none, the thing with exactly this name.
 * @throws Failure that lists the candidates if several have the name, or none has it
 */
export function pickNamed<T extends Named>(things: readonly T[], wanted: string, { one, several, list }: Kind): T {
  const found = things.find(({ id }) => id === wanted);
  if (found) return found;
  const named = things.filter(({ name }) => name === wanted);
  const [only] = named;
  if (only && named.length === 1) return only;
  const text = JSON.stringify(harmlessLine(wanted, 100));
  if (only) throw new Failure(`several ${several} are called ${text}; give the id of one:\n${linesOf(named)}`);
  throw new Failure(
    things.length === 0
      ? `there is no ${one} ${text}, and the list is empty`
      : `there is no ${one} ${text}. List them with: bin/runyard ${list}\n${linesOf(things)}`,
  );
}

function linesOf(things: readonly Named[]): string {
  const lines = things.slice(0, mostCandidates).map(({ id, name }) => `  ${id}  ${harmlessLine(name, 60)}`);
  return [...lines, ...(things.length > mostCandidates ? ['  …'] : [])].join('\n');
}

/** Returns the UID of an environment that a person names. Sends no request for a UID. */
export async function environmentUid(client: Pick<Client, 'listEnvironments'>, wanted: string): Promise<string> {
  if (uid.test(wanted)) return wanted;
  const { environments } = await client.listEnvironments();
  const things = environments.map((each) => ({ id: each.uid, name: each.config.name ?? '' }));
  return pickNamed(things, wanted, { one: 'environment', several: 'environments', list: 'environments' }).id;
}

/** Returns the id of a schedule that a person names. Sends no request for an id. */
export async function scheduleId(client: Pick<Client, 'listSchedules'>, wanted: string): Promise<string> {
  if (uuid.test(wanted)) return wanted.toLowerCase();
  const { schedules } = await client.listSchedules();
  return pickNamed(schedules, wanted, { one: 'schedule', several: 'schedules', list: 'schedules list' }).id;
}

/** Returns the UID of a factory that a person names. The person may also use the alias of the factory. Sends no request for a UID. */
async function factoryUid(client: Client, wanted: string): Promise<string> {
  if (uid.test(wanted)) return wanted;
  const factories = await allFactories(client);
  const ofAlias = factories.find(({ alias }) => alias === wanted);
  if (ofAlias) return ofAlias.uid;
  const things = factories.map((each) => ({ id: each.uid, name: each.name }));
  return pickNamed(things, wanted, { one: 'factory', several: 'factories', list: 'factory list' }).id;
}

/** Returns the id of a stored MCP server that a person names. Sends no request for an id. */
async function mcpServerId(client: Pick<Client, 'listMcpServers'>, wanted: string): Promise<string> {
  if (uuid.test(wanted)) return wanted.toLowerCase();
  const { mcp_servers: servers } = await client.listMcpServers();
  return pickNamed(servers, wanted, { one: 'MCP server', several: 'MCP servers', list: 'mcp' }).id;
}

/** Returns all factories of the team, by name. */
export async function allFactories(client: Client): Promise<Factory[]> {
  const found: Factory[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listFactories({
      query: { limit: 100, ...(cursor === undefined ? {} : { cursor }) },
    });
    found.push(...page.factories);
    cursor = page.page_info.next_cursor;
  } while (cursor !== undefined);
  return found;
}

/** Returns the webhooks of all factories of the team. */
export async function allWebhooks(client: Client): Promise<(Webhook & { readonly factory_uid: string })[]> {
  const found: (Webhook & { readonly factory_uid: string })[] = [];
  for (const { uid: factoryUid } of await allFactories(client)) {
    const { webhooks } = await client.listWebhooks({ params: { factoryUid } });
    found.push(...webhooks.map((webhook) => ({ ...webhook, factory_uid: factoryUid })));
  }
  return found;
}

/** Finds a webhook by UID or name. Also returns the factory of the webhook. */
export async function findWebhook(client: Client, wanted: string): Promise<{ factoryUid: string; webhookUid: string }> {
  const webhooks = (await allWebhooks(client)).map((webhook) => ({ ...webhook, id: webhook.uid }));
  const found = pickNamed(webhooks, wanted, { one: 'webhook', several: 'webhooks', list: 'webhooks list' });
  return { factoryUid: found.factory_uid, webhookUid: found.uid };
}

/** Returns the automations of all factories of the team. */
export async function allAutomations(client: Client): Promise<(Automation & { readonly factory_uid: string })[]> {
  const found: (Automation & { readonly factory_uid: string })[] = [];
  for (const { uid: factoryUid } of await allFactories(client)) {
    const { automations } = await client.listAutomations({ params: { factoryUid } });
    found.push(...automations.map((automation) => ({ ...automation, factory_uid: factoryUid })));
  }
  return found;
}

/** Finds an automation by UID or name. Also returns the factory of the automation. */
export async function findAutomation(
  client: Client,
  wanted: string,
): Promise<Automation & { readonly factory_uid: string }> {
  const automations = (await allAutomations(client)).map((each) => ({ ...each, id: each.uid }));
  const { id: _, ...found } = pickNamed(automations, wanted, {
    one: 'automation',
    several: 'automations',
    list: 'automations list',
  });
  return found;
}

/** Returns the parameter `teamUid` of a path: the team of RUNYARD_TEAM or, if it is not set, the team of the key. */
export async function teamParams(client: Pick<Client, 'listTeams'>): Promise<{ teamUid: string }> {
  const { teams } = await client.listTeams();
  const team = teams.find(({ is_current }) => is_current);
  if (!team) throw new Failure('the key belongs to no team');
  return { teamUid: team.uid };
}

/** For each kind of thing, the function that returns the id of a thing that a person names. */
export const idOf = {
  environment: environmentUid,
  factory: factoryUid,
  mcpServer: mcpServerId,
  schedule: scheduleId,
};

/** Returns the context of this process, and the id of the factory in an argument of its command. @throws the same errors as `pickNamed` */
export async function contextAndFactory(name: string): Promise<[context: Context, factoryUid: string]> {
  const context = processContext();
  return [context, await factoryUid(connect(context), name)];
}
