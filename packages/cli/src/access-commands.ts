/** Subcommands that manage keys, teams, people and agent identities, and show the audit log. */
import { roles } from '@runyard/contract/wire/access';
import { keyKinds } from '@runyard/contract/wire/choices';
import { Argument, type Command, Option } from 'commander';
import { loadContext } from './load-context.ts';
import { wholeNumber } from './whole-number.ts';

const loadKeys = () => import('./commands/keys.ts');
const loadTeams = () => import('./commands/teams.ts');
const loadUsers = () => import('./commands/users.ts');
const loadIdentities = () => import('./commands/identities.ts');
const loadWorkers = () => import('./commands/workers.ts');
const loadAudit = () => import('./commands/audit.ts');

const asJson = ['--json', 'print JSON'] as const;
const userHelp = 'id of a person, from runyard users';

export function addKeyCommands(program: Command): void {
  const keys = program.command('keys').description('list, create and delete API keys');
  keys
    .command('list', { isDefault: true })
    .description('list the API keys that you may see, without their secret parts')
    .option(...asJson)
    .action(async (options) => (await loadKeys()).listKeys(await loadContext(), options));
  keys
    .command('create')
    .description('create a key, which is shown once')
    .argument('<name>')
    .addOption(
      new Option('--kind <kind>', 'personal: acts as you; agent: acts as a service account')
        .choices(keyKinds)
        .default('personal'),
    )
    .option('--agent <uid>', 'agent identity that an agent key acts as')
    .addOption(new Option('--expires-in <time>').choices(['1d', '30d', '90d', 'never']).default('never'))
    .option(...asJson)
    .action(async (name, options) =>
      (await loadKeys()).createKey(
        await loadContext(),
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
    .action(async (uid) => (await loadKeys()).deleteKey(await loadContext(), uid));
  keys
    .command('replace-operator-key')
    .description("make a new operator's key, on the machine of the service and without the old one")
    .action(async () => (await import('./commands/operator-key.ts')).replaceKeyOfOperator(await loadContext()));
}

export function addTeamCommands(program: Command): void {
  const teams = program.command('teams').description('list your teams, create and rename them, join one');
  teams
    .command('list', { isDefault: true })
    .description('list your teams')
    .option(...asJson)
    .action(async (options) => (await loadTeams()).listTeams(await loadContext(), options));
  teams
    .command('create')
    .description("create a team, with the operator's key; you become its owner")
    .argument('<name>')
    .option(...asJson)
    .action(async (name, options) => (await loadTeams()).createTeam(await loadContext(), name, options));
  teams
    .command('rename')
    .description('rename the team that RUNYARD_TEAM names, or that of your key')
    .argument('<name>')
    .action(async (name) => (await loadTeams()).renameTeam(await loadContext(), name));
  teams
    .command('join')
    .description('accept an invitation as the person of your API key')
    .argument('<invitation>', 'key of the invitation')
    .action(async (invitation) => (await loadTeams()).joinTeam(await loadContext(), invitation));
}

export function addUserCommands(program: Command): void {
  const users = program.command('users').description('list, invite and remove the people of a team');
  users
    .command('list', { isDefault: true })
    .description('list the people of the team')
    .option(...asJson)
    .action(async (options) => (await loadUsers()).listUsers(await loadContext(), options));
  users
    .command('invite')
    .description('make an invitation for one person; its key is shown once')
    .addOption(new Option('--role <role>', 'role of the person, not above yours').choices(roles).default('member'))
    .option('--note <text>', 'for whom it is')
    .option(...asJson)
    .action(async ({ role, note, ...options }) =>
      (await loadUsers()).inviteUser(await loadContext(), { role, ...(note === undefined ? {} : { note }) }, options),
    );
  users
    .command('accept')
    .description('accept an invitation as a new person; your first API key is shown once')
    .argument('<invitation>', 'key of the invitation')
    .argument('<name>', 'your name')
    .option('--email <address>', 'your email address')
    .option(...asJson)
    .action(async (key, name, { email, ...options }) =>
      (await loadUsers()).acceptInvitation(
        await loadContext(),
        { key, display_name: name, ...(email === undefined ? {} : { email }) },
        options,
      ),
    );
  users
    .command('role')
    .description('change the role of a person')
    .argument('<user>', userHelp)
    .addArgument(new Argument('<role>').choices(roles))
    .action(async (user, role) => (await loadUsers()).setUserRole(await loadContext(), user, role));
  users
    .command('remove')
    .description("remove a person; the person's keys of the team stop working at once")
    .argument('<user>', userHelp)
    .option('--delete-agent-keys', 'delete also the agent keys that the person made (default: ask)')
    .option('--delete-pools', 'delete also the pools of workers that the person owns (default: ask)')
    .action(async (user, options) => (await loadUsers()).removeUser(await loadContext(), user, options));
}

const identityHelp = 'UID of the identity; bin/runyard identities list shows it';

export function addIdentityCommands(program: Command): void {
  const identities = program.command('identities').description('manage agents with defaults and keys of their own');
  identities
    .command('list', { isDefault: true })
    .description('list them')
    .option(...asJson)
    .action(async (options) => (await loadIdentities()).listIdentities(await loadContext(), options));
  identities
    .command('show')
    .description('show one as JSON')
    .argument('<identity>', identityHelp)
    .action(async (uid) => (await loadIdentities()).showIdentity(await loadContext(), uid));
  identities
    .command('create')
    .description('create one, and print its UID')
    .argument('<file>', 'JSON file with name, environment_id, base_model, skills and secrets, - for standard input')
    .action(async (file) => (await loadIdentities()).createIdentity(await loadContext(), file));
  identities
    .command('update')
    .description('change one')
    .argument('<identity>', identityHelp)
    .argument('<file>', 'JSON file with the members to change, - for standard input')
    .action(async (uid, file) => (await loadIdentities()).updateIdentity(await loadContext(), uid, file));
  identities
    .command('delete')
    .description('delete one; its keys stop working at once')
    .argument('<identity>', identityHelp)
    .action(async (uid) => (await loadIdentities()).deleteIdentity(await loadContext(), uid));
}

const poolHelp = 'name of the workers, as in config.worker_host';
const connectorHelp =
  'id of a person (runyard users), an agent identity (runyard identities), or an agent key without one';

export function addWorkerPoolCommands(program: Command): void {
  const workers = program
    .command('workers')
    .description('list the pools of self-hosted workers, and manage who connects');
  workers
    .command('list', { isDefault: true })
    .description('list the pools, with their owners and others who connect')
    .option(...asJson)
    .action(async (options) => (await loadWorkers()).listWorkerPools(await loadContext(), options));
  workers
    .command('allow')
    .description('let the workers of somebody connect to a pool; they get its runs, with tokens and secrets')
    .argument('<pool>', poolHelp)
    .argument('<id>', connectorHelp)
    .action(async (pool, uid) => (await loadWorkers()).allowWorkers(await loadContext(), pool, uid));
  workers
    .command('deny')
    .description('end the right to connect to a pool, and the connections that use it')
    .argument('<pool>', poolHelp)
    .argument('<id>', connectorHelp)
    .action(async (pool, uid) => (await loadWorkers()).denyWorkers(await loadContext(), pool, uid));
  workers
    .command('delete')
    .description('delete a pool; the next worker that connects under its name owns it')
    .argument('<pool>', poolHelp)
    .action(async (pool) => (await loadWorkers()).deleteWorkerPool(await loadContext(), pool));
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
    .action(async ({ subject, ...options }) =>
      (await loadAudit()).listAudit(await loadContext(), {
        ...options,
        ...(subject === undefined ? {} : { subject_uid: subject }),
      }),
    );
}
