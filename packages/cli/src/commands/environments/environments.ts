/** Environments, and the people of other teams who use them: guests, and people with the link. */
import { jsonFrom } from '../../input/input-file.ts';
import { group, request } from '../../route-commands/row.ts';
import { idOf } from '../../service/named.ts';

const environment = { usage: '<environment>', find: idOf.environment };
const file = {
  usage: '<file>',
  help: 'JSON file with the member config, - for standard input',
  member: '*',
  read: jsonFrom,
};
const helpBelow = `
For example:
  {"config": {"name": "Web", "github_repos": [{"owner": "octocat", "repo": "Hello-World"}],
   "setup_commands": ["cp Hello-World/README greeting.txt"],
   "services": [{"name": "redis", "command": "exec redis-server", "port": 6379},
                {"name": "postgres", "image": "postgres:17", "port": 5432, "env": {"POSTGRES_PASSWORD": "test"}}]}}
The API reference has all members of config.`;

/** The commands of `environments`. */
export const environments = [
  request('listEnvironments', 'list', 'list the environments of the team, the last changed first', {
    isDefault: true,
    list: {
      of: 'environments',
      columns: [
        { header: 'ENVIRONMENT', text: ({ uid }) => uid },
        { header: 'NAME', flexible: true, text: ({ config }) => config.name ?? '' },
        { header: 'UPDATED', ago: ({ last_updated }) => last_updated },
        {
          header: 'SETUP',
          text: ({ setup_failed }) => (setup_failed ? 'failed' : 'ok'),
          paint: ({ setup_failed }, colours) => (setup_failed ? colours.red : colours.green),
        },
        {
          header: 'REPOSITORIES',
          flexible: true,
          text: ({ config }) => (config.github_repos ?? []).map(({ owner, repo }) => `${owner}/${repo}`).join(', '),
        },
      ],
      none: 'no environments; create one with: bin/runyard environments create FILE',
    },
  }),
  request('getEnvironment', 'show', 'show an environment as JSON', { arguments: [environment] }),
  request('createEnvironment', 'create', 'create an environment, and print its UID', {
    arguments: [file],
    helpBelow,
    lines: ({ uid }) => uid,
  }),
  request('updateEnvironment', 'update', 'replace the configuration of an environment', {
    arguments: [environment, file],
    helpBelow,
    lines: (_, { uid }) => `${uid} is changed`,
  }),
  request('deleteEnvironment', 'delete', 'delete an environment; runs that use it continue unchanged', {
    arguments: [environment],
    lines: (_, { uid }) => `${uid} is deleted`,
  }),
  request('shareEnvironment', 'share', 'allow every person with the link to use an environment', {
    arguments: [environment],
    orJson: true,
    lines: ({ url }) => url ?? [],
    notesWithJson: true,
    notes: () => 'every person who has the uid may use the environment now, with a personal key',
  }),
  request('unshareEnvironment', 'unshare', 'end the sharing by link, for everyone who opened it', {
    arguments: [environment],
    lines: (_, { uid }) => `${uid} is not shared`,
  }),
  group('guests', 'manage the guests of an environment'),
  request('listEnvironmentGuests', 'guests list', 'list the guests of an environment, and the open invitations', {
    arguments: [environment],
    list: {
      of: 'guests',
      columns: [
        { header: 'PERSON', text: ({ user }) => user.uid },
        { header: 'ACCEPTED', ago: ({ granted_at }) => granted_at },
        { header: 'NAME', flexible: true, text: ({ user }) => user.display_name ?? '' },
      ],
      none: ({ uid }) => `no guests; invite one with: bin/runyard environments guests invite ${uid} PERSON`,
    },
    notes: ({ invitations }) =>
      invitations.map(({ id, user_uid, email }) => `invited: ${user_uid ?? email ?? ''} (invitation ${id})`),
  }),
  request(
    'inviteEnvironmentGuest',
    'guests invite',
    'invite a person of another team, who sees the environment after accepting',
    {
      arguments: [
        environment,
        {
          usage: '<person>',
          help: 'UID, as in the profiles of answers, or address',
          member: '*',
          read: (person) => (person.includes('@') ? { email: person } : { user_uid: person }),
        },
      ],
      orJson: true,
      lines: ({ id }) => id,
      notesWithJson: true,
      notes: (_, { person = '' }) =>
        `the person sees the environment after: bin/runyard environments invitations accept ID${person.includes('@') ? `; send the id to ${person}: no list shows it to the person` : ''}`,
    },
  ),
  request('withdrawEnvironmentInvitation', 'guests withdraw', 'withdraw an invitation', {
    arguments: [environment, { usage: '<invitation>' }],
    lines: (_, { guestInvitationId }) => `${guestInvitationId} is withdrawn`,
  }),
  request('removeEnvironmentGuest', 'guests remove', 'remove a guest', {
    arguments: [environment, { usage: '<person-uid>' }],
    lines: (_, { uid, userUid }) => `${userUid} is not a guest of ${uid}`,
  }),
  group('invitations', 'answer your invitations to environments of other teams'),
  request('listEnvironmentInvitations', 'invitations list', 'list them', {
    isDefault: true,
    list: {
      of: 'invitations',
      columns: [
        { header: 'INVITATION', text: ({ id }) => id },
        { header: 'FROM', text: ({ invited_by, team_name }) => [invited_by, team_name].filter(Boolean).join(', ') },
        {
          header: 'ENVIRONMENT',
          flexible: true,
          text: ({ environment_name, environment_uid }) => environment_name ?? environment_uid,
        },
      ],
      none: 'no invitations',
    },
  }),
  request(
    'acceptEnvironmentInvitation',
    'invitations accept',
    'accept an invitation; administrators of its team see your name',
    {
      arguments: [{ usage: '<invitation>' }],
      lines: (_, { guestInvitationId }) => `${guestInvitationId} is accepted`,
    },
  ),
  request('declineEnvironmentInvitation', 'invitations decline', 'decline one', {
    arguments: [{ usage: '<invitation>' }],
    lines: (_, { guestInvitationId }) => `${guestInvitationId} is declined`,
  }),
  request('leaveEnvironment', 'leave', 'leave an environment of another team', {
    arguments: [{ usage: '<environment>' }],
    lines: (_, { uid }) => `you are not a guest of ${uid}`,
  }),
];
