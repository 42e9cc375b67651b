/** Secrets that runs can use. */
import type { Command } from 'commander';
import { readSecretValue } from '../../input/input-file.ts';
import { request } from '../../route-commands/row.ts';

const scope = 'personal: only your runs may use it; team: all runs of people may use it';

/** The commands of `secrets`. */
export const secrets = [
  request('listSecrets', 'list', 'list the secrets, without their values', {
    isDefault: true,
    list: {
      of: 'secrets',
      columns: [
        { header: 'NAME', text: ({ name }) => name },
        { header: 'SCOPE', text: (secret) => secret.scope },
        { header: 'SET', ago: ({ updated_at }) => updated_at },
        { header: 'USED', ago: ({ last_used_at }) => last_used_at, never: 'never' },
        { header: 'AGENTS', flexible: true, text: ({ agents }) => agents?.join(', ') ?? '' },
      ],
      none: 'no secrets; set one with: bin/runyard secrets set NAME < FILE',
    },
  }),
  request('putSecret', 'set', 'set a secret to the content of standard input or a file', {
    arguments: [{ usage: '<name>', help: 'name of the secret, and of its variable in sandboxes' }],
    flags: {
      '--scope <scope>': { member: 'scope', help: scope, default: 'personal' },
      '--file <file>': {
        member: 'value',
        help: 'file with the value (default: standard input)',
        read: readSecretValue,
      },
      '--agent <uid>': {
        member: 'agents',
        help: 'service account whose runs may use a secret of the team; repeat the option for more',
      },
    },
    orJson: true,
    lines: (secret) => `${secret.name} is set (${secret.scope})`,
  }),
  request('deleteSecret', 'delete', 'delete a secret; runs that got its value keep it', {
    arguments: [{ usage: '<name>' }],
    flags: { '--scope <scope>': { member: 'scope', help: scope } },
    lines: (_, { name }) => `${name} is deleted`,
  }),
  (noun: Command) =>
    void noun
      .command('rotate-key')
      .description('change the key that seals secrets in the data folder, also while the service runs')
      .action(async () => (await import('./rotate-key.ts')).rotateSecretsKey()),
];
