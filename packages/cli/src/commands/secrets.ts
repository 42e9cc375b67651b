import type { Secret, SecretScope } from '@runyard/contract/secrets/secrets';
import { secretScopes } from '@runyard/contract/wire/choices';
import { type Command, Option } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import { readInput } from '../input-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { asJson, collect } from '../options.ts';

/** Lists the secrets that the caller may use, without their values. */
export async function listSecrets(context: Context, options: { readonly json?: true }): Promise<void> {
  const { secrets } = await connect(context).listSecrets();
  const columns = secretColumns(Date.now());
  const none = 'no secrets; set one with: bin/runyard secrets set NAME < FILE';
  printList(context, { columns, rows: secrets, json: { secrets }, none }, options);
}

function secretColumns(now: number): Column<Secret>[] {
  return [
    { header: 'NAME', text: ({ name }) => name },
    { header: 'SCOPE', text: ({ scope }) => scope },
    { header: 'SET', text: ({ updated_at }) => formatAgo(updated_at, now), raw: ({ updated_at }) => updated_at },
    {
      header: 'USED',
      text: ({ last_used_at }) => (last_used_at ? formatAgo(last_used_at, now) : 'never'),
      raw: ({ last_used_at }) => last_used_at ?? '',
    },
    { header: 'AGENTS', flexible: true, text: ({ agents }) => agents?.join(', ') ?? '' },
  ];
}

/** Source of a secret's value, and the people who may use it. */
interface SetSecretOptions {
  readonly scope: SecretScope;
  /** File with the value. Default: standard input. */
  readonly file?: string;
  /** Service accounts whose runs may name the secret. */
  readonly agent?: readonly string[];
  readonly json?: true;
}

/**
 * Sets a secret to the text of a file or of standard input. Removes one line break at the end of the text. The value is never an
 * argument, because other users of the machine can read arguments.
 */
async function setSecret(context: Context, name: string, options: SetSecretOptions): Promise<void> {
  const { scope, file, agent } = options;
  const value = readValue(file).replace(/\r?\n$/, '');
  const body = { value, scope, ...(agent ? { agents: [...agent] } : {}) };
  const secret = await connect(context).putSecret({ params: { name }, body });
  context.out(options.json ? `${harmlessJson(secret)}\n` : `${secret.name} is set (${secret.scope})\n`);
}

function readValue(file: string | undefined): string {
  if (file === undefined && process.stdin.isTTY)
    throw new Failure(
      'the value comes from standard input or a file: bin/runyard secrets set NAME < FILE, or --file FILE',
      2,
    );
  const bytes = readInput(file ?? '-');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Failure('the value is not UTF-8 text; encode it, for example as base64');
  }
}

/** Deletes a secret. Runs that already have its value keep the value. */
export async function deleteSecret(
  context: Context,
  name: string,
  { scope }: { readonly scope?: SecretScope },
): Promise<void> {
  await connect(context).deleteSecret({ params: { name }, query: scope === undefined ? {} : { scope } });
  context.out(`${name} is deleted\n`);
}

/**
 * Replaces the key in the data folder with which secrets are encrypted. A running service then encrypts the stored secrets again with the
 * new key.
 */
async function rotateSecretsKey(context: Context): Promise<void> {
  if (context.settings.RUNYARD_SECRETS_KEY !== undefined)
    throw new Failure(
      'the key is in RUNYARD_SECRETS_KEY: set it to NEW,OLD (two keys with a comma), restart the services one after the other, and remove OLD a day later',
    );
  const { rotateKey } = await import('@runyard/service/rotate-key');
  const outcome = await rotateKey(context.folder.path);
  switch (outcome.kind) {
    case 'rotated':
      context.out(
        `${outcome.file}: key ${outcome.keyId} seals from now on; ${outcome.previousKeyId} still opens.\nA running service seals what it holds again within seconds, and removes the earlier key a day later. Copy the file to your backup.\n`,
      );
      return;
    case 'no_file':
      throw new Failure(`there is no ${outcome.file}: no secret was stored in this data folder yet`);
    case 'busy':
      throw new Failure(`another process changes ${outcome.file}; try again`);
  }
}

const scope = () =>
  new Option('--scope <scope>', 'personal: only your runs may use it; team: all runs of people may use it');

/** Declares the command `secrets`. */
export function declareSecrets(secrets: Command): void {
  secrets
    .command('list', { isDefault: true })
    .description('list the secrets, without their values')
    .option(...asJson)
    .action((options) => listSecrets(processContext(), options));
  secrets
    .command('set')
    .description('set a secret to the content of standard input or a file')
    .argument('<name>', 'name of the secret, and of its variable in sandboxes')
    .addOption(scope().choices(secretScopes).default('personal'))
    .option('--file <file>', 'file with the value (default: standard input)')
    .option(
      '--agent <uid>',
      'service account whose runs may use a secret of the team; repeat the option for more',
      collect,
    )
    .option(...asJson)
    .action((name, options) => setSecret(processContext(), name, options));
  secrets
    .command('delete')
    .description('delete a secret; runs that got its value keep it')
    .argument('<name>')
    .addOption(scope().choices(secretScopes))
    .action((name, options) => deleteSecret(processContext(), name, options));
  secrets
    .command('rotate-key')
    .description('change the key that seals secrets in the data folder, also while the service runs')
    .action(() => rotateSecretsKey(processContext()));
}
