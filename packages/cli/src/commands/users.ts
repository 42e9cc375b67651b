import { createClient } from '@runyard/client';
import type { TeamMember } from '@runyard/contract/team/teams';
import { type Role, roles } from '@runyard/contract/wire/access';
import { Argument, type Command, Option } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext, requireOrigin } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { isConfirmed } from '../live/confirm.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { asJson } from '../options.ts';
import { currentTeam } from './teams.ts';

interface Options {
  readonly json?: true;
}

const columns = (now: number): Column<TeamMember>[] => [
  { header: 'USER', text: ({ user }) => user.uid },
  { header: 'ROLE', text: ({ role }) => role },
  {
    header: 'USED',
    text: ({ last_used_at }) => (last_used_at ? formatAgo(last_used_at, now) : 'never'),
    raw: ({ last_used_at }) => last_used_at ?? '',
  },
  { header: 'NAME', flexible: true, text: ({ user }) => user.display_name ?? '' },
  { header: 'EMAIL', flexible: true, text: ({ user }) => user.email ?? '' },
];

/** Lists the people of the team. */
async function listUsers(context: Context, options: Options): Promise<void> {
  const params = { teamUid: await currentTeam(context) };
  const people = await connect(context).listTeamMembers({ params });
  const { members, rules } = people;
  printList(context, { columns: columns(Date.now()), rows: members, json: people, none: 'no people' }, options);
  if (rules !== undefined && !options.json)
    context.report(
      `rules of single sign-on manage the team: ${rules.map(({ group, role }) => `${harmlessLine(group)} is ${role}`).join(', ')}`,
    );
}

/** Invites a person and shows the key of the invitation, which cannot be shown again. */
async function inviteUser(
  context: Context,
  request: { readonly role: Role; readonly note?: string },
  options: Options,
): Promise<void> {
  const params = { teamUid: await currentTeam(context) };
  const invitation = await connect(context).createTeamInvitation({ params, body: request });
  if (options.json) return context.out(`${harmlessJson(invitation)}\n`);
  context.out(`${invitation.key}\n`);
  context.report(
    `an invitation for one ${invitation.role}, until ${invitation.expires_at.slice(0, 10)}; the key is shown only now. Accept it with: bin/runyard users accept KEY NAME`,
  );
}

/** Accepts an invitation as a new person and shows the person's first API key, which cannot be shown again. */
async function acceptInvitation(
  context: Context,
  request: { readonly key: string; readonly display_name: string; readonly email?: string },
  options: Options,
): Promise<void> {
  // Sends no API key, because the new person has no key yet, and a key in the environment belongs to another person.
  const client = createClient({ baseUrl: requireOrigin(context), userAgent: 'runyard-cli', strict: true });
  const accepted = await client.acceptTeamInvitation({ body: request });
  if (options.json) return context.out(`${harmlessJson(accepted)}\n`);
  context.out(`${accepted.key}\n`);
  context.report(
    `you are ${accepted.team.role} of ${harmlessLine(accepted.team.name)}. This is your API key, for RUNYARD_API_KEY; it is not shown again`,
  );
}

/** Changes the role of a person. */
async function setUserRole(context: Context, userUid: string, role: Role): Promise<void> {
  const params = { teamUid: await currentTeam(context), userUid };
  const member = await connect(context).updateTeamMember({ params, body: { role } });
  context.out(`${userUid} is now ${member.role}\n`);
}

/**
 * Removes a person from the team. The person's keys of this team stop working at once. Then asks whether to delete the agent keys and
 * worker pools that the person has made. Without a terminal, prints these keys and pools with the commands that delete them.
 */
async function removeUser(
  context: Context,
  userUid: string,
  options: { readonly deleteAgentKeys?: true; readonly deletePools?: true },
): Promise<void> {
  const client = connect(context);
  const params = { teamUid: await currentTeam(context), userUid };
  const removed = await client.removeTeamMember({
    params,
    query: {
      agent_keys: options.deleteAgentKeys ? 'delete' : 'keep',
      worker_pools: options.deletePools ? 'delete' : 'keep',
    },
  });
  context.out(`${userUid} is removed\n`);
  const ownedThings = [
    {
      areDeleted: options.deleteAgentKeys,
      what: 'agent keys that the person made; other people may have copies',
      things: removed.agent_keys.map(({ uid, name }) => ({ id: uid, text: `${uid} ${harmlessLine(name)}` })),
      command: 'keys delete',
      end: (uid: string) => client.deleteKey({ params: { uid } }),
    },
    {
      areDeleted: options.deletePools,
      what: 'pools of workers that the person owns',
      things: removed.worker_pools.map((name) => ({ id: name, text: name })),
      command: 'workers delete',
      end: (poolName: string) => client.deleteWorkerPool({ params: { poolName } }),
    },
  ];
  for (const { areDeleted, what, things, command, end } of ownedThings) {
    if (things.length === 0) continue;
    context.out(
      `${areDeleted ? 'deleted' : 'there are'} ${what}:\n${things.map(({ text }) => `  ${text}\n`).join('')}`,
    );
    if (areDeleted) continue;
    if (!process.stdin.isTTY) context.report(`they stay; delete one with bin/runyard ${command} ID`);
    else if (await isConfirmed('Delete them? [y/N] ')) for (const { id } of things) await end(id);
  }
}

const userHelp = 'id of a person, from runyard users';

/** Declares the command `users`. */
export function declareUsers(users: Command): void {
  users
    .command('list', { isDefault: true })
    .description('list the people of the team')
    .option(...asJson)
    .action((options) => listUsers(processContext(), options));
  users
    .command('invite')
    .description('make an invitation for one person; its key is shown once')
    .addOption(new Option('--role <role>', 'role of the person, not above yours').choices(roles).default('member'))
    .option('--note <text>', 'for whom it is')
    .option(...asJson)
    .action(async ({ role, note, ...options }) =>
      inviteUser(processContext(), { role, ...(note === undefined ? {} : { note }) }, options),
    );
  users
    .command('accept')
    .description('accept an invitation as a new person; your first API key is shown once')
    .argument('<invitation>', 'key of the invitation')
    .argument('<name>', 'your name')
    .option('--email <address>', 'your email address')
    .option(...asJson)
    .action(async (key, name, { email, ...options }) =>
      acceptInvitation(
        processContext(),
        { key, display_name: name, ...(email === undefined ? {} : { email }) },
        options,
      ),
    );
  users
    .command('role')
    .description('change the role of a person')
    .argument('<user>', userHelp)
    .addArgument(new Argument('<role>').choices(roles))
    .action((user, role) => setUserRole(processContext(), user, role));
  users
    .command('remove')
    .description("remove a person; the person's keys of the team stop working at once")
    .argument('<user>', userHelp)
    .option('--delete-agent-keys', 'delete also the agent keys that the person made (default: ask)')
    .option('--delete-pools', 'delete also the pools of workers that the person owns (default: ask)')
    .action((user, options) => removeUser(processContext(), user, options));
}
