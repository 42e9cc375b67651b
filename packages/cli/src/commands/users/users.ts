/** The people of a team. */
import { roles } from '@runyard/contract/wire/access';
import { type Row, request } from '../../route-commands/row.ts';
import { teamParams } from '../../service/named.ts';
import { declareRemove } from './remove.ts';

/** The commands of `users`. */
export const users: readonly Row[] = [
  request('listTeamMembers', 'list', 'list the people of the team', {
    isDefault: true,
    params: teamParams,
    list: {
      of: 'members',
      columns: [
        { header: 'USER', text: ({ user }) => user.uid },
        { header: 'ROLE', text: ({ role }) => role },
        { header: 'USED', ago: ({ last_used_at }) => last_used_at, never: 'never' },
        { header: 'NAME', flexible: true, text: ({ user }) => user.display_name ?? '' },
        { header: 'EMAIL', flexible: true, text: ({ user }) => user.email ?? '' },
      ],
      none: 'no people',
    },
    notes: ({ rules }) =>
      rules === undefined
        ? []
        : `rules of single sign-on manage the team: ${rules.map(({ group, role }) => `${group} is ${role}`).join(', ')}`,
  }),
  request('createTeamInvitation', 'invite', 'make an invitation for one person; its key is shown once', {
    params: teamParams,
    flags: {
      '--role <role>': { member: 'role', default: 'member' },
      '--note <text>': 'note',
      '--hours <hours>': 'expires_in_hours',
    },
    orJson: true,
    lines: ({ key }) => key,
    notes: ({ role, expires_at }) =>
      `an invitation for one ${role}, until ${expires_at.slice(0, 10)}; the key is shown only now. Its link: the address of the dashboard with /sign-in#invitation=KEY behind it. Without a browser: bin/runyard users accept KEY NAME`,
  }),
  request('acceptTeamInvitation', 'accept', 'accept an invitation as a new person; your first API key is shown once', {
    anonymous: true,
    arguments: [
      { usage: '<invitation>', help: 'key of the invitation', member: 'key' },
      { usage: '<name>', help: 'your name', member: 'display_name' },
    ],
    flags: { '--email <address>': { member: 'email', help: 'your email address' } },
    orJson: true,
    lines: ({ key }) => key,
    notes: ({ team }) =>
      `you are ${team.role} of ${team.name}. This is your API key, for RUNYARD_API_KEY; it is not shown again`,
  }),
  request('updateTeamMember', 'role', 'change the role of a person', {
    params: teamParams,
    arguments: [
      { usage: '<user>', help: 'id of a person, from runyard users' },
      { usage: '<role>', choices: roles, member: 'role' },
    ],
    lines: ({ role }, { userUid }) => `${userUid} is now ${role}`,
  }),
  declareRemove,
];
