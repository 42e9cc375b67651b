import { createClient } from '@runyard/client';
import type { Role } from '@runyard/contract/access';
import type { TeamMember } from '@runyard/contract/teams';
import { connect } from '../api.ts';
import { type Context, requireOrigin } from '../context.ts';
import type { Column } from '../live/columns.ts';
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

/** Removes a person from the team; the person's keys of the team stop working at once. */
export async function removeUser(context: Context, userUid: string): Promise<void> {
  const params = { teamUid: await currentTeam(context), userUid };
  await connect(context).removeTeamMember({ params });
  context.out(`${userUid} is removed\n`);
}
