/** Groups of subcommands: the results of runs, the things that runs can name, and the commands for other programs. */
import { usageDimensions } from '@runyard/contract/wire/choices';
import { Argument, type Command, Option } from 'commander';
import { addListWord } from './list-word.ts';
import { loadContext, loadNamed } from './load-context.ts';
import { completedShells, shells } from './shells.ts';

const loadArtifacts = () => import('./commands/artifacts.ts');
const loadModels = () => import('./commands/models.ts');
const loadAgents = () => import('./commands/agents.ts');
const loadCatalogue = () => import('./commands/catalogue.ts');
const loadEnvironments = () => import('./commands/environments.ts');
const loadMcp = () => import('./commands/mcp.ts');
const loadCodeHosts = () => import('./commands/code-hosts.ts');
const loadBudget = () => import('./commands/budget.ts');
const loadEnv = () => import('./commands/env.ts');
const loadApi = () => import('./commands/api.ts');

const asJson = ['--json', 'print JSON'] as const;
const collect = (value: string, before: string[] = []) => [...before, value];

export function addArtifactCommands(program: Command, runHelp: string): void {
  const artifacts = program.command('artifacts').description('list and download the artifacts of runs');
  artifacts
    .command('list')
    .description('list the artifacts of a run')
    .argument('<run>', runHelp)
    .option(...asJson)
    .action(async (run, options) => (await loadArtifacts()).listArtifacts(await loadContext(), run, options));
  artifacts
    .command('get')
    .description('download an artifact of a run; a plan as Markdown')
    .argument('<run>', runHelp)
    .argument('<name>', 'name, path in the workspace, or uid of the artifact')
    .option('-o, --output <file>', 'file to write, - for standard output (default: a new file of its name)')
    .action(async (run, name, options) => (await loadArtifacts()).getArtifact(await loadContext(), run, name, options));
}

export function addCatalogueCommands(program: Command): void {
  const models = program
    .command('models')
    .description('list the language models that runs can name; choose default, fallbacks and disabled ones of the team')
    .option('--all', 'also models that cannot be used, with the reason')
    .option(...asJson)
    .action(async (options) => (await loadModels()).listModels(await loadContext(), options));
  addListWord(models, async (options) => (await loadModels()).listModels(await loadContext(), options));
  models
    .command('default')
    .description('choose the model of runs that name none')
    .argument('<model>', 'id of a model, or none: the default of the service')
    .action(async (model) => (await loadModels()).chooseDefault(await loadContext(), model));
  models
    .command('fallbacks')
    .description('choose the models for runs whose provider has an outage, in their order; without one, none')
    .argument('[models...]')
    .action(async (ids) => (await loadModels()).chooseFallbacks(await loadContext(), ids));
  models
    .command('disable')
    .description('forbid models to runs of the team, at once')
    .argument('<models...>')
    .action(async (ids) => (await loadModels()).switchModels(await loadContext(), 'disable', ids));
  models
    .command('enable')
    .description('permit disabled models again')
    .argument('<models...>')
    .action(async (ids) => (await loadModels()).switchModels(await loadContext(), 'enable', ids));
  const agents = program
    .command('agents')
    .description('list the agents (skills) that runs can follow')
    .option('--repo <owner/repo>', 'of this repository (default: of all environments)')
    .option('--refresh', 'read the repositories again')
    .option('--all', 'also skills and repositories that cannot be used, with the reason')
    .addOption(new Option('--sort <order>', 'order').choices(['name', 'last_run']).default('name'))
    .option(...asJson)
    .action(async (options) => (await loadAgents()).listAgents(await loadContext(), options));
  addListWord(agents, async (options) => (await loadAgents()).listAgents(await loadContext(), options));
  addEnvironmentCommands(program);
}

const environmentFile = 'JSON file with the member config, - for standard input';
const environmentExample = `
For example:
  {"config": {"name": "Web", "github_repos": [{"owner": "octocat", "repo": "Hello-World"}],
   "setup_commands": ["cp Hello-World/README greeting.txt"]}}
The API reference has all members of config.`;

function addEnvironmentCommands(program: Command): void {
  const environments = program
    .command('environments')
    .description('manage the environments that runs can name, and share them with people of other teams');
  environments
    .command('list', { isDefault: true })
    .description('list the environments of the team')
    .option(...asJson)
    .action(async (options) => (await loadCatalogue()).listEnvironments(await loadContext(), options));
  environments
    .command('show')
    .description('show an environment as JSON')
    .argument('<environment>')
    .action(async (uid) => (await loadEnvironments()).showEnvironment(...(await loadNamed('environment', uid))));
  environments
    .command('create')
    .description('create an environment, and print its UID')
    .argument('<file>', environmentFile)
    .addHelpText('after', environmentExample)
    .action(async (file) => (await loadEnvironments()).createEnvironment(await loadContext(), file));
  environments
    .command('update')
    .description('replace the configuration of an environment')
    .argument('<environment>')
    .argument('<file>', environmentFile)
    .addHelpText('after', environmentExample)
    .action(async (uid, file) =>
      (await loadEnvironments()).updateEnvironment(...(await loadNamed('environment', uid)), file),
    );
  environments
    .command('delete')
    .description('delete an environment; runs that use it continue unchanged')
    .argument('<environment>')
    .action(async (uid) => (await loadEnvironments()).deleteEnvironment(...(await loadNamed('environment', uid))));
  environments
    .command('share')
    .description('let every person who has the link use an environment')
    .argument('<environment>')
    .option(...asJson)
    .action(async (uid, options) =>
      (await loadEnvironments()).shareEnvironment(...(await loadNamed('environment', uid)), options),
    );
  environments
    .command('unshare')
    .description('end the sharing by link, for everyone who opened it')
    .argument('<environment>')
    .action(async (uid) => (await loadEnvironments()).unshareEnvironment(...(await loadNamed('environment', uid))));
  const guests = environments.command('guests').description('manage the guests of an environment');
  guests
    .command('list')
    .description('list the guests of an environment')
    .argument('<environment>')
    .option(...asJson)
    .action(async (uid, options) =>
      (await loadEnvironments()).listGuests(...(await loadNamed('environment', uid)), options),
    );
  guests
    .command('invite')
    .description('invite a person of another team, who sees the environment after accepting')
    .argument('<environment>')
    .argument('<person>', 'UID, as in the profiles of answers, or address')
    .option(...asJson)
    .action(async (uid, person, options) =>
      (await loadEnvironments()).inviteGuest(...(await loadNamed('environment', uid)), person, options),
    );
  guests
    .command('withdraw')
    .description('withdraw an invitation')
    .argument('<environment>')
    .argument('<invitation>')
    .action(async (uid, id) => (await loadEnvironments()).withdrawGuest(...(await loadNamed('environment', uid)), id));
  guests
    .command('remove')
    .description('remove a guest')
    .argument('<environment>')
    .argument('<person-uid>')
    .action(async (uid, person) =>
      (await loadEnvironments()).removeGuest(...(await loadNamed('environment', uid)), person),
    );
  const invitations = environments
    .command('invitations')
    .description('answer your invitations to environments of other teams');
  invitations
    .command('list', { isDefault: true })
    .description('list them')
    .option(...asJson)
    .action(async (options) => (await loadEnvironments()).listInvitations(await loadContext(), options));
  invitations
    .command('accept')
    .description('accept one; its administrators see your name')
    .argument('<invitation>')
    .action(async (id) => (await loadEnvironments()).answerInvitation(await loadContext(), id, true));
  invitations
    .command('decline')
    .description('decline one')
    .argument('<invitation>')
    .action(async (id) => (await loadEnvironments()).answerInvitation(await loadContext(), id, false));
  environments
    .command('leave')
    .description('leave an environment of another team')
    .argument('<environment>')
    .action(async (uid) => (await loadEnvironments()).leaveEnvironment(await loadContext(), uid));
}

export function addMcpCommands(program: Command): void {
  const mcp = program.command('mcp').description('manage the MCP servers that runs can name');
  const described = (command: Command) =>
    command
      .option('--url <url>', 'address of a server over HTTP, which only the service reaches')
      .option('--command <program>', 'program to start inside the sandbox')
      .option('--arg <text>', 'argument of the program; repeat for more', collect)
      .option('--values <file>', 'JSON object of headers or of variables, which are sealed; - for standard input')
      .option(...asJson);
  mcp
    .command('list', { isDefault: true })
    .description('list the MCP servers of the team, without the values of headers and variables')
    .option(...asJson)
    .action(async (options) => (await loadMcp()).listMcpServers(await loadContext(), options));
  mcp
    .command('get')
    .description('show an MCP server as JSON')
    .argument('<server-id>')
    .action(async (id) => (await loadMcp()).getMcpServer(await loadContext(), id));
  described(mcp.command('create').description('store an MCP server').argument('<name>')).action(async (name, options) =>
    (await loadMcp()).createMcpServer(await loadContext(), name, options),
  );
  described(mcp.command('update').description('change an MCP server').argument('<server-id>'))
    .option('--name <name>', 'new name')
    .action(async (id, options) => (await loadMcp()).updateMcpServer(await loadContext(), id, options));
  mcp
    .command('delete')
    .description('delete an MCP server')
    .argument('<server-id>')
    .action(async (id) => (await loadMcp()).deleteMcpServer(await loadContext(), id));
}

export function addCodeHostCommands(program: Command): void {
  const codeHosts = program
    .command('code-hosts')
    .description('store the credentials with which private repositories are cloned and pushed');
  codeHosts
    .command('list', { isDefault: true })
    .description('list the credentials, without their secret parts')
    .option(...asJson)
    .action(async (options) => (await loadCodeHosts()).listCodeHosts(await loadContext(), options));
  codeHosts
    .command('add')
    .description('store a token, or with --app-id the private key of a GitHub App')
    .option('--team', 'for every run of the team (default: only for your own runs)')
    .option('--owner <owner>', 'only for repositories of this owner (default: of every owner)')
    .option('--host <host>', 'code host (default: the one of RUNYARD_CODE_HOST_URL)')
    .option('--username <name>', 'name that a token is sent with (default: x-access-token; GitLab: oauth2)')
    .option('--app-id <id>', 'id or client id of a GitHub App')
    .option('--installation <id>', 'its installation (default: the one that the repository belongs to)')
    .option('--file <file>', 'file with the token or private key, - for standard input', '-')
    .option(...asJson)
    .addHelpText('after', '\n  gh auth token | bin/runyard code-hosts add --owner acme')
    .action(async (options) => (await loadCodeHosts()).addCodeHost(await loadContext(), options));
  codeHosts
    .command('delete')
    .description('delete a credential')
    .argument('<credential-id>')
    .action(async (id) => (await loadCodeHosts()).deleteCodeHost(await loadContext(), id));
}

export function addBudgetCommands(program: Command): void {
  const budget = program.command('budget').description("show and set the team's budget for models");
  budget
    .command('show', { isDefault: true })
    .description('show the limits, and the spending of this month')
    .option(...asJson)
    .action(async (options) => (await loadBudget()).showBudget(await loadContext(), options));
  budget
    .command('set')
    .description('set limits; those that are not given stay')
    .option('--monthly <usd>', 'US dollars of a calendar month in UTC, or none')
    .option('--credits <credits>', 'credits that are left from now on, or none; a credit is a US cent')
    .option(...asJson)
    .action(async (options) => (await loadBudget()).setBudget(await loadContext(), options));
  program
    .command('usage')
    .description("report the team's use of models")
    .option('--from <day>', 'first day in UTC (default: 29 days before the last)')
    .option('--to <day>', 'last day in UTC (default: today)')
    .addOption(new Option('--by <groups...>', 'what to break the sums down by (default: day)').choices(usageDimensions))
    .option(...asJson)
    .action(async (options) => (await loadBudget()).listUsage(await loadContext(), options));
}

export function addToolCommands(program: Command): void {
  program
    .command('env')
    .description('print the variables with address and key, for curl and the published clients')
    .addOption(new Option('--shell <shell>', 'whose syntax').choices(shells).default('sh'))
    .option(...asJson)
    .addHelpText('after', '\nFor this shell and all that it starts: eval "$(bin/runyard env)"')
    .action(async (options) => (await loadEnv()).printEnvironment(await loadContext(), options));
  program
    .command('api')
    .description('send one request to the API with the key, and print the answer')
    .argument('<method>', 'GET, POST, …')
    .argument('<path>', 'such as /agent/runs; /api/v1 may be left out')
    .option('--data <json>', 'body; - for standard input, @FILE for a file')
    .option('-H, --header <header>', "a header, 'Name: value'; repeat for more", collect)
    .option('-i, --include', 'print status and headers first')
    .action(async (method, path, options) => (await loadApi()).callApi(await loadContext(), method, path, options));
  program
    .command('completion')
    .description('print the script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>').choices(completedShells))
    .addHelpText(
      'after',
      `
  bash   eval "$(bin/runyard completion bash)"          in ~/.bashrc
  zsh    eval "$(bin/runyard completion zsh)"           in ~/.zshrc, after compinit
  fish   bin/runyard completion fish | source           in ~/.config/fish/config.fish`,
    )
    .action(async (shell) => (await import('./commands/completion.ts')).printCompletion(program, shell));
}
