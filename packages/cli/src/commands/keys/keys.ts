/** API keys. */
import type { Command } from 'commander';
import { processContext } from '../../context/context.ts';
import { request } from '../../route-commands/row.ts';

/** The commands of `keys`. */
export const keys = [
  request('listKeys', 'list', 'list the API keys that you may see, without their secret parts', {
    isDefault: true,
    list: {
      of: 'keys',
      columns: [
        { header: 'KEY ID', text: ({ uid }) => uid },
        { header: 'KIND', text: ({ kind }) => kind },
        { header: 'KEY', text: ({ prefix, last_four }) => `${prefix}…${last_four}` },
        {
          header: 'EXPIRES',
          text: ({ expires_at }) => expires_at?.slice(0, 10) ?? 'never',
          raw: ({ expires_at }) => expires_at ?? '',
        },
        { header: 'USED', ago: ({ last_used_at }) => last_used_at, never: 'never' },
        { header: 'NAME', flexible: true, text: ({ name }) => name },
      ],
      none: 'no keys',
    },
  }),
  request('createKey', 'create', 'create a key, which is shown once', {
    arguments: [{ usage: '<name>', member: 'name' }],
    flags: {
      '--kind <kind>': { member: 'kind', default: 'personal' },
      '--agent <uid>': 'agent_uid',
      '--limited-to <purpose>': 'limited_to',
      '--expires-in <time>': { member: 'expires_in', default: 'never' },
    },
    orJson: true,
    lines: ({ key }) => key,
    notes: ({ uid, name }) => `key ${uid} (${name}); it is shown only now`,
  }),
  request('deleteKey', 'delete', 'delete a key, which stops working at once', {
    arguments: [{ usage: '<key-id>' }],
    lines: (_, { uid }) => `${uid} is deleted`,
  }),
  (noun: Command) =>
    void noun
      .command('replace-operator-key')
      .description("make a new operator's key, on the machine of the service and without the old one")
      .action(async () => (await import('./operator-key.ts')).replaceKeyOfOperator(processContext())),
];
