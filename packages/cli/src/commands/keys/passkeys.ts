/** Passkeys of the caller. Only a browser can add one. */
import { request } from '../../route-commands/row.ts';

/** The commands of `passkeys`. */
export const passkeys = [
  request('listPasskeys', 'list', 'list your passkeys', {
    isDefault: true,
    list: {
      of: 'passkeys',
      columns: [
        { header: 'PASSKEY ID', text: ({ id }) => id },
        { header: 'ADDED', ago: ({ created_at }) => created_at },
        { header: 'USED', ago: ({ last_used_at }) => last_used_at, never: 'never' },
        { header: 'NAME', flexible: true, text: ({ name }) => name },
      ],
      none: 'no passkeys; add one in the dashboard: Settings, Keys',
    },
  }),
  request('updatePasskey', 'rename', 'rename a passkey', {
    arguments: [{ usage: '<passkey-id>' }, { usage: '<name>', member: 'name' }],
    lines: ({ id, name }) => `${id} is now ${name}`,
  }),
  request('deletePasskey', 'delete', 'delete a passkey, and sign out the browsers that it signed in', {
    arguments: [{ usage: '<passkey-id>' }],
    lines: (_, { passkeyId }) => `${passkeyId} is deleted`,
  }),
];
