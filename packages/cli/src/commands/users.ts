import { createClient } from '@runyard/client';
import type { TeamMember } from '@runyard/contract/team/teams';
import type { Role } from '@runyard/contract/wire/access';
import { connect } from '../api.ts';
import { type Context, requireOrigin } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { isConfirmed } from '../live/confirm.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
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
export async function listUsers(context: Context, options: Options): Promise<void> {
  const params = { teamUid: await currentTeam(context) };
  const { members } = await connect(context).listTeamMembers({ params });
  printList(context, { columns: columns(Date.now()), rows: members, json: { members }, none: 'no people' }, options);
}

/** Invites a person and shows the key of the invitation once. */
export async function inviteUser(
  context: Context,
  request: { readonly role: Role; readonly note?: string },
  options: Options,
): Promise<void> {
  const params = { teamUid: await currentTeam(context) };
  const made = await connect(context).createTeamInvitation({ params, body: request });
  if (options.json) return context.out(`${harmlessJson(made)}\n`);
  context.out(`${made.key}\n`);
  context.report(
    `an invitation for one ${made.role}, until ${made.expires_at.slice(0, 10)}; it is shown only now. It is accepted with: bin/runyard users accept KEY NAME`,
  );
}

/** Accepts an invitation as a new person and shows the first API key once. */
export async function acceptInvitation(
  context: Context,
  request: { readonly key: string; readonly display_name: string; readonly email?: string },
  options: Options,
): Promise<void> {
  // The new person has no API key yet, and a key in the environment belongs to another person.
  const client = createClient({ baseUrl: requireOrigin(context), userAgent: 'runyard-cli', strict: true });
  const accepted = await client.acceptTeamInvitation({ body: request });
  if (options.json) return context.out(`${harmlessJson(accepted)}\n`);
  context.out(`${accepted.key}\n`);
  context.report(
    `you are ${accepted.team.role} of ${harmlessLine(accepted.team.name)}. This is your API key, for RUNYARD_API_KEY; it is shown only now`,
  );
}

/** Changes the role of a person. */
export async function setUserRole(context: Context, userUid: string, role: Role): Promise<void> {
  const params = { teamUid: await currentTeam(context), userUid };
  const member = await connect(context).updateTeamMember({ params, body: { role } });
  context.out(`${userUid} is now ${member.role}\n`);
}

/**
 * Removes a person from the team; the person's keys of the team stop working at once. Asks what becomes of the agent keys and pools of
 * workers that the person made; without a terminal, shows them and the commands that delete them.
 */
export async function removeUser(
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
  const made = [
    {
      areDeleted: options.deleteAgentKeys,
      what: 'agent keys that the person made, of which there may be copies',
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
  for (const { areDeleted, what, things, command, end } of made) {
    if (things.length === 0) continue;
    context.out(
      `${areDeleted ? 'deleted' : 'there are'} ${what}:\n${things.map(({ text }) => `  ${text}\n`).join('')}`,
    );
    if (areDeleted) continue;
    if (!process.stdin.isTTY) context.report(`they stay; delete one with bin/runyard ${command} ID`);
    else if (await isConfirmed('Delete them? [y/N] ')) for (const { id } of things) await end(id);
  }
}
