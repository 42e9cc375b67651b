import { secretScopes } from '@runyard/contract/wire/choices';
import { type Command, Option } from 'commander';
import { loadContext } from './load-context.ts';

const loadSecrets = () => import('./commands/secrets.ts');

const asJson = ['--json', 'print JSON'] as const;
const collect = (value: string, before: string[] = []) => [...before, value];
const scope = () => new Option('--scope <scope>', 'personal: only your runs may use it; team: all runs of people');

export function addSecretCommands(program: Command): void {
  const secrets = program.command('secrets').description('list, set and delete the secrets that runs can use');
  secrets
    .command('list', { isDefault: true })
    .description('list the secrets, without their values')
    .option(...asJson)
    .action(async (options) => (await loadSecrets()).listSecrets(await loadContext(), options));
  secrets
    .command('set')
    .description('set a secret to the content of standard input or a file')
    .argument('<name>', 'name of the secret, and of its variable in sandboxes')
    .addOption(scope().choices(secretScopes).default('personal'))
    .option('--file <file>', 'file with the value (default: standard input)')
    .option('--agent <uid>', 'service account whose runs may name a secret of the team; repeat for more', collect)
    .option(...asJson)
    .action(async (name, options) => (await loadSecrets()).setSecret(await loadContext(), name, options));
  secrets
    .command('delete')
    .description('delete a secret; runs that got its value keep it')
    .argument('<name>')
    .addOption(scope().choices(secretScopes))
    .action(async (name, options) => (await loadSecrets()).deleteSecret(await loadContext(), name, options));
  secrets
    .command('rotate-key')
    .description('change the key that seals secrets in the data folder, also while the service runs')
    .action(async () => (await loadSecrets()).rotateSecretsKey(await loadContext()));
}
