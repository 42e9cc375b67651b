import type { CodeHostCredential, CreateCodeHostCredentialRequest } from '@runyard/contract/team/code-hosts';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import { readInput } from '../input-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { asJson } from '../options.ts';

/** Lists the credentials of code hosts that the caller may see, without their secret parts. */
async function listCodeHosts(context: Context, options: { readonly json?: true }): Promise<void> {
  const found = await connect(context).listCodeHostCredentials();
  const now = Date.now();
  const columns: Column<CodeHostCredential>[] = [
    { header: 'CREDENTIAL ID', text: ({ id }) => id },
    { header: 'HOST', text: ({ host }) => host },
    { header: 'OWNER', text: ({ owner }) => owner ?? 'every' },
    { header: 'KIND', text: ({ kind, app_id }) => (app_id === undefined ? kind : `${kind} ${app_id}`) },
    {
      header: 'CREATED',
      text: ({ created_at }) => formatAgo(created_at, now),
      raw: ({ created_at }) => created_at,
    },
    {
      header: 'FOR RUNS OF',
      flexible: true,
      text: ({ user }) => (user === undefined ? 'the team' : (user.display_name ?? user.uid)),
    },
  ];
  const none = 'no credentials of code hosts; store one with: bin/runyard code-hosts add';
  printList(context, { columns, rows: found.credentials, json: found, none }, options);
}

interface AddOptions {
  readonly team?: true;
  readonly owner?: string;
  readonly host?: string;
  readonly username?: string;
  readonly appId?: string;
  readonly installation?: string;
  readonly file: string;
  readonly json?: true;
}

/** Stores a credential. Reads the secret part from a file or standard input, because other users of the machine can read arguments. */
export async function addCodeHost(
  context: Context,
  options: AddOptions,
  readStandardInput: () => string = readPiped,
): Promise<void> {
  const body = requestOf(options, readSecret(options.file, readStandardInput));
  const createdCredential = await connect(context).createCodeHostCredential({ body });
  if (options.json) context.out(`${harmlessJson(createdCredential)}\n`);
  else context.out(`${createdCredential.id}\n`);
  context.report(
    `stored for ${createdCredential.host}${createdCredential.owner === undefined ? '' : `/${createdCredential.owner}`}, for runs of ${createdCredential.scope === 'team' ? 'the team' : 'yourself'}`,
  );
}

/** Reads the secret from a pipe. Refuses a terminal, because it would show the secret while a person types. */
function readPiped(): string {
  if (process.stdin.isTTY)
    throw new Failure(
      'the token or private key comes from standard input or a file: gh auth token | bin/runyard code-hosts add, or --file FILE',
      2,
    );
  return readInput('-').toString('utf8');
}

function readSecret(file: string, readStandardInput: () => string): string {
  const text = (file === '-' ? readStandardInput() : readInput(file, 2).toString('utf8')).trim();
  if (text === '') throw new Failure('the token or private key is empty; give it on standard input, or --file FILE', 2);
  return text;
}

function requestOf(options: AddOptions, secret: string): CreateCodeHostCredentialRequest {
  const { team, owner, host, username, appId, installation } = options;
  const place = {
    scope: team ? ('team' as const) : ('personal' as const),
    ...(owner === undefined ? {} : { owner }),
    ...(host === undefined ? {} : { host }),
    ...(username === undefined ? {} : { username }),
    ...(installation === undefined ? {} : { installation_id: installation }),
  };
  return appId === undefined
    ? { ...place, kind: 'token', token: secret }
    : { ...place, kind: 'github_app', app_id: appId, private_key: secret };
}

/** Deletes a credential. */
async function deleteCodeHost(context: Context, credentialId: string): Promise<void> {
  await connect(context).deleteCodeHostCredential({ params: { credentialId } });
  context.out(`${credentialId} is deleted\n`);
}

/** Declares the command `code-hosts`. */
export function declareCodeHosts(codeHosts: Command): void {
  codeHosts
    .command('list', { isDefault: true })
    .description('list the credentials, without their secret parts')
    .option(...asJson)
    .action((options) => listCodeHosts(processContext(), options));
  codeHosts
    .command('add')
    .description('store a token, or with --app-id the private key of a GitHub App')
    .option('--team', 'for every run of the team (default: only for your own runs)')
    .option('--owner <owner>', 'only for repositories of this owner (default: of every owner)')
    .option('--host <host>', 'code host (default: the one of RUNYARD_CODE_HOST_URL)')
    .option('--username <name>', 'name that a token is sent with (default: x-access-token; GitLab: oauth2)')
    .option('--app-id <id>', 'id or client id of a GitHub App')
    .option('--installation <id>', "the installation of the App (default: the repository's installation)")
    .option('--file <file>', 'file with the token or private key, - for standard input', '-')
    .option(...asJson)
    .addHelpText('after', '\n  gh auth token | bin/runyard code-hosts add --owner acme')
    .action((options) => addCodeHost(processContext(), options));
  codeHosts
    .command('delete')
    .description('delete a credential')
    .argument('<credential-id>')
    .action((id) => deleteCodeHost(processContext(), id));
}
