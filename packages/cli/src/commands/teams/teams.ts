/** Teams of the caller. */
import { request } from '../../route-commands/row.ts';
import { teamParams } from '../../service/named.ts';

/** The commands of `teams`. */
export const teams = [
  request('listTeams', 'list', 'list your teams', {
    isDefault: true,
    list: {
      of: 'teams',
      columns: [
        { header: 'TEAM', text: ({ uid }) => uid },
        { header: 'ROLE', text: ({ role }) => role },
        { header: 'CURRENT', text: ({ is_current }) => (is_current ? 'yes' : '') },
        { header: 'NAME', flexible: true, text: ({ name }) => name },
      ],
      none: 'no teams',
    },
  }),
  request('createTeam', 'create', "create a team, with the operator's key; you become its owner", {
    arguments: [{ usage: '<name>', member: 'name' }],
    orJson: true,
    lines: ({ uid }) => uid,
    notes: ({ uid, name }) => `team ${name}. To act in it: export RUNYARD_TEAM=${uid}`,
  }),
  request('updateTeam', 'rename', 'rename the team that RUNYARD_TEAM names, or the team of your key', {
    params: teamParams,
    arguments: [{ usage: '<name>', member: 'name' }],
    lines: ({ uid, name }) => `${uid} is now ${name}`,
  }),
  request('joinTeam', 'join', 'accept an invitation as the person of your API key', {
    arguments: [{ usage: '<invitation>', help: 'key of the invitation', member: 'key' }],
    lines: ({ uid }) => uid,
    notes: ({ uid, name, role }) => `you are ${role} of ${name}. To act in it: export RUNYARD_TEAM=${uid}`,
  }),
];
