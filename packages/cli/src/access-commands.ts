/** Subcommands about keys, teams, people and agents in them, and what these change. */
import { roles } from '@runyard/contract/access';
import { KeyKind } from '@runyard/contract/keys';
import { Argument, type Command, Option } from 'commander';
import { listAudit } from './commands/audit.ts';
import { createIdentity, deleteIdentity, listIdentities, showIdentity, updateIdentity } from './commands/identities.ts';
import { createKey, deleteKey, listKeys } from './commands/keys.ts';
import { createTeam, joinTeam, listTeams, renameTeam } from './commands/teams.ts';
import { acceptInvitation, inviteUser, listUsers, removeUser, setUserRole } from './commands/users.ts';
import { createContext } from './context.ts';
import { wholeNumber } from './whole-number.ts';

const asJson = ['--json', 'print JSON'] as const;
const userHelp = 'id of a person, from runyard users';

export function addKeyCommands(program: Command): void {
  const keys = program.command('keys').description('list, create and delete API keys');
  keys
    .command('list', { isDefault: true })
    .option(...asJson)
    .action(async (options) => listKeys(createContext(process.env), options));
  keys
    .command('create')
    .description('create a key, which is shown once')
    .argument('<name>')
    .addOption(
      new Option('--kind <kind>', 'personal: acts as you; agent: acts as a service account')
        .choices(KeyKind.options)
        .default('personal'),
    )
    .option('--agent <uid>', 'agent identity that an agent key acts as')
    .addOption(new Option('--expires-in <time>').choices(['1d', '30d', '90d', 'never']).default('never'))
    .option(...asJson)
    .action(async (name, options) =>
      createKey(
        createContext(process.env),
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
    .argument('<key-id>')
    .action(async (uid) => deleteKey(createContext(process.env), uid));
}

export function addTeamCommands(program: Command): void {
  const teams = program.command('teams').description('list your teams, create and rename them, join one');
  teams
    .command('list', { isDefault: true })
    .option(...asJson)
    .action(async (options) => listTeams(createContext(process.env), options));
  teams
    .command('create')
    .description("create a team, with the operator's key; you become its owner")
    .argument('<name>')
    .option(...asJson)
    .action(async (name, options) => createTeam(createContext(process.env), name, options));
  teams
    .command('rename')
    .description('rename the team that RUNYARD_TEAM names, or that of your key')
    .argument('<name>')
    .action(async (name) => renameTeam(createContext(process.env), name));
  teams
    .command('join')
    .description('accept an invitation as the person of your API key')
    .argument('<invitation>', 'key of the invitation')
    .action(async (invitation) => joinTeam(createContext(process.env), invitation));
}

export function addUserCommands(program: Command): void {
  const users = program.command('users').description('list, invite and remove the people of a team');
  users
    .command('list', { isDefault: true })
    .option(...asJson)
    .action(async (options) => listUsers(createContext(process.env), options));
  users
    .command('invite')
    .description('make an invitation for one person; its key is shown once')
    .addOption(new Option('--role <role>', 'role of the person, not above yours').choices(roles).default('member'))
    .option('--note <text>', 'for whom it is')
    .option(...asJson)
    .action(async ({ role, note, ...options }) =>
      inviteUser(createContext(process.env), { role, ...(note === undefined ? {} : { note }) }, options),
    );
  users
    .command('accept')
    .description('accept an invitation as a new person; your first API key is shown once')
    .argument('<invitation>', 'key of the invitation')
    .argument('<name>', 'your name')
    .option('--email <address>', 'your email address')
    .option(...asJson)
    .action(async (key, name, { email, ...options }) =>
      acceptInvitation(
        createContext(process.env),
        { key, display_name: name, ...(email === undefined ? {} : { email }) },
        options,
      ),
    );
  users
    .command('role')
    .description('change the role of a person')
    .argument('<user>', userHelp)
    .addArgument(new Argument('<role>').choices(roles))
    .action(async (user, role) => setUserRole(createContext(process.env), user, role));
  users
    .command('remove')
    .description("remove a person; the person's keys of the team stop working at once")
    .argument('<user>', userHelp)
    .action(async (user) => removeUser(createContext(process.env), user));
}

const identityHelp = 'UID of the identity; bin/runyard identities list shows it';

export function addIdentityCommands(program: Command): void {
  const context = () => createContext(process.env);
  const identities = program.command('identities').description('manage agents with defaults and keys of their own');
  identities
    .command('list', { isDefault: true })
    .description('list them')
    .option(...asJson)
    .action((options) => listIdentities(context(), options));
  identities
    .command('show')
    .description('show one as JSON')
    .argument('<identity>', identityHelp)
    .action((uid) => showIdentity(context(), uid));
  identities
    .command('create')
    .description('create one, and print its UID')
    .argument('<file>', 'JSON file with name, environment_id, base_model, skills and secrets, - for standard input')
    .action((file) => createIdentity(context(), file));
  identities
    .command('update')
    .description('change one')
    .argument('<identity>', identityHelp)
    .argument('<file>', 'JSON file with the members to change, - for standard input')
    .action((uid, file) => updateIdentity(context(), uid, file));
  identities
    .command('delete')
    .description('delete one; its keys stop working at once')
    .argument('<identity>', identityHelp)
    .action((uid) => deleteIdentity(context(), uid));
}

export function addAuditCommand(program: Command): void {
  program
    .command('audit')
    .description('list the changes in the team, newest first, for administrators')
    .option('--limit <count>', 'how many, at most 500 (default: 50)', wholeNumber)
    .option('--actor <uid>', 'only those of a person or agent')
    .option('--action <name>', 'only those of a kind, such as key.create')
    .option('--subject <uid>', 'only those of a thing')
    .option('--since <time>', 'only those at this time or later, RFC 3339')
    .option('--until <time>', 'only those before this time, RFC 3339')
    .option(...asJson)
    .action(({ subject, ...options }) =>
      listAudit(createContext(process.env), {
        ...options,
        ...(subject === undefined ? {} : { subject_uid: subject }),
      }),
    );
}
