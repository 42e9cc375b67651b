/** Manages agent identities. */
import type {
  AgentIdentity,
  CreateAgentIdentityRequest,
  UpdateAgentIdentityRequest,
} from '@runyard/contract/team/identities';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { jsonFrom } from '../json-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { asJson } from '../options.ts';
import { reportWaiting } from './report-waiting.ts';

const columns: Column<AgentIdentity>[] = [
  { header: 'IDENTITY', text: ({ uid }) => uid },
  {
    header: 'STATUS',
    text: ({ available }) => (available ? 'available' : 'unavailable'),
    paint: ({ available }, colours) => (available ? colours.green : colours.red),
  },
  { header: 'MODEL', text: ({ base_model }) => base_model ?? '' },
  { header: 'ENVIRONMENT', text: ({ environment_id }) => environment_id ?? '' },
  { header: 'NAME', flexible: true, text: ({ name }) => name },
];

/** Lists the agent identities of the team, oldest first. */
export async function listIdentities(context: Context, options: { readonly json?: true }): Promise<void> {
  const found = await connect(context).listAgentIdentities();
  const none = 'no agent identities; create one with: bin/runyard identities create FILE';
  printList(context, { columns, rows: found.agents, json: found, none }, options);
}

/** Shows an identity as JSON. */
export async function showIdentity(context: Context, identityUid: string): Promise<void> {
  context.out(`${harmlessJson(await connect(context).getAgentIdentity({ params: { identityUid } }))}\n`);
}

/** Creates an identity from the JSON of a request, and prints its UID. */
export async function createIdentity(context: Context, file: string): Promise<void> {
  const body = jsonFrom(file) as CreateAgentIdentityRequest;
  context.out(`${(await connect(context).createAgentIdentity({ body })).uid}\n`);
}

/** Changes the members that the JSON of a request has. */
export async function updateIdentity(context: Context, identityUid: string, file: string): Promise<void> {
  const body = jsonFrom(file) as UpdateAgentIdentityRequest;
  const { waiting } = await connect(context).updateAgentIdentity({ params: { identityUid }, body });
  context.out(`${identityUid} is changed\n`);
  reportWaiting(context, waiting);
}

/** Deletes an identity; its keys stop working at once. */
export async function deleteIdentity(context: Context, identityUid: string): Promise<void> {
  await connect(context).deleteAgentIdentity({ params: { identityUid } });
  context.out(`${identityUid} is deleted\n`);
}

const identityHelp = 'UID of the identity; bin/runyard identities list shows it';

/** Declares the command `identities`. */
export function declareIdentities(identities: Command): void {
  identities
    .command('list', { isDefault: true })
    .description('list them')
    .option(...asJson)
    .action((options) => listIdentities(processContext(), options));
  identities
    .command('show')
    .description('show one as JSON')
    .argument('<identity>', identityHelp)
    .action((uid) => showIdentity(processContext(), uid));
  identities
    .command('create')
    .description('create one, and print its UID')
    .argument('<file>', 'JSON file with name, environment_id, base_model, skills and secrets, - for standard input')
    .action((file) => createIdentity(processContext(), file));
  identities
    .command('update')
    .description('change one')
    .argument('<identity>', identityHelp)
    .argument('<file>', 'JSON file with the members to change, - for standard input')
    .action((uid, file) => updateIdentity(processContext(), uid, file));
  identities
    .command('delete')
    .description('delete one; its keys stop working at once')
    .argument('<identity>', identityHelp)
    .action((uid) => deleteIdentity(processContext(), uid));
}
