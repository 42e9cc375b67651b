/** Credentials of code hosts. */
import { Failure } from '../../exits/failure.ts';
import { readInput } from '../../input/input-file.ts';
import { request } from '../../route-commands/row.ts';

/** Reads the secret part from a file or a pipe. Refuses a terminal, because it would show the secret while a person types. */
function readSecret(file = '-'): string {
  if (file === '-' && process.stdin.isTTY)
    throw new Failure(
      'the token or private key comes from standard input or a file: gh auth token | bin/runyard code-hosts add, or --file FILE',
      2,
    );
  const text = readInput(file, 2).toString('utf8').trim();
  if (text === '') throw new Failure('the token or private key is empty; give it on standard input, or --file FILE', 2);
  return text;
}

/** The commands of `code-hosts`. */
export const codeHosts = [
  request('listCodeHostCredentials', 'list', 'list the credentials, without their secret parts', {
    isDefault: true,
    list: {
      of: 'credentials',
      columns: [
        { header: 'CREDENTIAL ID', text: ({ id }) => id },
        { header: 'HOST', text: ({ host }) => host },
        { header: 'OWNER', text: ({ owner }) => owner ?? 'every' },
        { header: 'KIND', text: ({ kind, app_id }) => (app_id === undefined ? kind : `${kind} ${app_id}`) },
        { header: 'CREATED', ago: ({ created_at }) => created_at },
        {
          header: 'FOR RUNS OF',
          flexible: true,
          text: ({ user }) => (user === undefined ? 'the team' : (user.display_name ?? user.uid)),
        },
      ],
      none: 'no credentials of code hosts; store one with: bin/runyard code-hosts add',
    },
  }),
  request('createCodeHostCredential', 'add', 'store a token, or with --app-id the private key of a GitHub App', {
    fixed: { scope: 'personal' },
    flags: {
      '--team': { member: 'scope', value: 'team', help: 'for every run of the team (default: only for your own runs)' },
      '--owner <owner>': 'owner',
      '--host <host>': { member: 'host', help: 'code host (default: the one of RUNYARD_CODE_HOST_URL)' },
      '--username <name>': {
        member: 'username',
        help: 'name that a token is sent with (default: x-access-token; GitLab: oauth2)',
      },
      '--app-id <id>': { member: 'app_id', help: 'id or client id of a GitHub App' },
      '--installation <id>': {
        member: 'installation_id',
        help: "the installation of the App (default: the repository's installation)",
      },
      '--file <file>': {
        member: 'token',
        help: 'file with the token or private key, - for standard input',
        default: '-',
        read: readSecret,
      },
    },
    complete: ({ token, ...members }) =>
      members.app_id === undefined
        ? { ...members, kind: 'token', token }
        : { ...members, kind: 'github_app', private_key: token },
    helpBelow: '\n  gh auth token | bin/runyard code-hosts add --owner acme',
    orJson: true,
    lines: ({ id }) => id,
    notesWithJson: true,
    notes: ({ host, owner, scope }) =>
      `stored for ${host}${owner === undefined ? '' : `/${owner}`}, for runs of ${scope === 'team' ? 'the team' : 'yourself'}`,
  }),
  request('deleteCodeHostCredential', 'delete', 'delete a credential', {
    arguments: [{ usage: '<credential-id>' }],
    lines: (_, { credentialId }) => `${credentialId} is deleted`,
  }),
];
