/** Agent identities. */
import { jsonFrom } from '../../input/input-file.ts';
import { request } from '../../route-commands/row.ts';

const identity = { usage: '<identity>', help: 'UID of the identity; bin/runyard identities list shows it' };

/** The commands of `identities`. */
export const identities = [
  request('listAgentIdentities', 'list', 'list them, oldest first', {
    isDefault: true,
    list: {
      of: 'agents',
      columns: [
        { header: 'IDENTITY', text: ({ uid }) => uid },
        {
          header: 'STATUS',
          text: ({ available }) => (available ? 'available' : 'unavailable'),
          paint: ({ available }, colours) => (available ? colours.green : colours.red),
        },
        { header: 'MODEL', text: ({ base_model }) => base_model ?? '' },
        { header: 'ENVIRONMENT', text: ({ environment_id }) => environment_id ?? '' },
        { header: 'NAME', flexible: true, text: ({ name }) => name },
      ],
      none: 'no agent identities; create one with: bin/runyard identities create FILE',
    },
  }),
  request('getAgentIdentity', 'show', 'show one as JSON', { arguments: [identity] }),
  request('createAgentIdentity', 'create', 'create an identity, and print its UID', {
    arguments: [
      {
        usage: '<file>',
        help: 'JSON file with name, environment_id, base_model, skills and secrets, - for standard input',
        member: '*',
        read: jsonFrom,
      },
    ],
    lines: ({ uid }) => uid,
  }),
  request('updateAgentIdentity', 'update', 'change one', {
    arguments: [
      identity,
      {
        usage: '<file>',
        help: 'JSON file with the members to change, - for standard input',
        member: '*',
        read: jsonFrom,
      },
    ],
    lines: ({ uid }) => `${uid} is changed`,
  }),
  request('deleteAgentIdentity', 'delete', 'delete an identity; its keys stop working at once', {
    arguments: [identity],
    lines: (_, { identityUid }) => `${identityUid} is deleted`,
  }),
];
