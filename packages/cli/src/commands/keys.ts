import type { ApiKey, CreateKeyRequest } from '@runyard/contract/team/keys';
import { keyKinds } from '@runyard/contract/wire/choices';
import { type Command, Option } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { asJson } from '../options.ts';

/** Lists the API keys of the caller's team, without their raw text. */
export async function listKeys(context: Context, options: { readonly json?: true }): Promise<void> {
  const { keys } = await connect(context).listKeys();
  const columns = keyColumns(Date.now());
  printList(context, { columns, rows: keys, json: { keys }, none: 'no keys' }, options);
}

function keyColumns(now: number): Column<ApiKey>[] {
  return [
    { header: 'KEY ID', text: ({ uid }) => uid },
    { header: 'KIND', text: ({ kind }) => kind },
    { header: 'KEY', text: ({ prefix, last_four }) => `${prefix}…${last_four}` },
    {
      header: 'EXPIRES',
      text: ({ expires_at }) => expires_at?.slice(0, 10) ?? 'never',
      raw: ({ expires_at }) => expires_at ?? '',
    },
    {
      header: 'USED',
      text: ({ last_used_at }) => (last_used_at ? formatAgo(last_used_at, now) : 'never'),
      raw: ({ last_used_at }) => last_used_at ?? '',
    },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
  ];
}

/** Creates a key and shows it once. */
export async function createKey(
  context: Context,
  request: CreateKeyRequest,
  options: { readonly json?: true },
): Promise<void> {
  const created = await connect(context).createKey({ body: request });
  if (options.json) {
    context.out(`${harmlessJson(created)}\n`);
    return;
  }
  context.out(`${created.key}\n`);
  context.report(`key ${created.uid} (${harmlessLine(created.name)}); it is shown only now`);
}

/** Deletes a key; it stops working at once. */
export async function deleteKey(context: Context, uid: string): Promise<void> {
  await connect(context).deleteKey({ params: { uid } });
  context.out(`${uid} is deleted\n`);
}

/** Declares the command `keys`. */
export function declareKeys(keys: Command): void {
  keys
    .command('list', { isDefault: true })
    .description('list the API keys that you may see, without their secret parts')
    .option(...asJson)
    .action((options) => listKeys(processContext(), options));
  keys
    .command('create')
    .description('create a key, which is shown once')
    .argument('<name>')
    .addOption(
      new Option(
        '--kind <kind>',
        'personal: acts as you; agent: acts as a service account; worker: only connects workers of the hosted pool',
      )
        .choices(keyKinds)
        .default('personal'),
    )
    .option('--agent <uid>', 'agent identity that an agent key acts as')
    .addOption(new Option('--expires-in <time>').choices(['1d', '30d', '90d', 'never']).default('never'))
    .option(...asJson)
    .action(async (name, options) =>
      createKey(
        processContext(),
        {
          name,
          kind: options.kind,
          expires_in: options.expiresIn,
          ...(options.agent === undefined ? {} : { agent_uid: options.agent }),
        },
        options,
      ),
    );
  keys
    .command('delete')
    .description('delete a key, which stops working at once')
    .argument('<key-id>')
    .action((uid) => deleteKey(processContext(), uid));
  keys
    .command('replace-operator-key')
    .description("make a new operator's key, on the machine of the service and without the old one")
    .action(async () => (await import('./operator-key.ts')).replaceKeyOfOperator(processContext()));
}
