/** Groups of subcommands of the runyard command: what runs produced, what they can name, and what other programs need. */
import { UsageDimension } from '@runyard/contract/budgets';
import { Argument, type Command, Option } from 'commander';
import { listAgents } from './commands/agents.ts';
import { callApi } from './commands/api.ts';
import { getArtifact, listArtifacts } from './commands/artifacts.ts';
import { listUsage, setBudget, showBudget } from './commands/budget.ts';
import { listEnvironments } from './commands/catalogue.ts';
import { addCodeHost, deleteCodeHost, listCodeHosts } from './commands/code-hosts.ts';
import { completions, printCompletion } from './commands/completion.ts';
import { printEnvironment, shells } from './commands/env.ts';
import {
  addGuest,
  createEnvironment,
  deleteEnvironment,
  listGuests,
  removeGuest,
  shareEnvironment,
  showEnvironment,
  unshareEnvironment,
  updateEnvironment,
} from './commands/environments.ts';
import { createMcpServer, deleteMcpServer, getMcpServer, listMcpServers, updateMcpServer } from './commands/mcp.ts';
import { chooseDefault, chooseFallbacks, listModels, switchModels } from './commands/models.ts';
import { createContext } from './context.ts';

const asJson = ['--json', 'print JSON'] as const;
const collect = (value: string, before: string[] = []) => [...before, value];

export function addArtifactCommands(program: Command, runHelp: string): void {
  const artifacts = program.command('artifacts').description('list and download what runs produced');
  artifacts
    .command('list')
    .description('list the artifacts of a run')
    .argument('<run>', runHelp)
    .option(...asJson)
    .action(async (run, options) => listArtifacts(createContext(process.env), run, options));
  artifacts
    .command('get')
    .description('download an artifact of a run; a plan as Markdown')
    .argument('<run>', runHelp)
    .argument('<name>', 'name, path in the workspace, or uid of the artifact')
    .option('-o, --output <file>', 'file to write, - for standard output (default: a new file of its name)')
    .action(async (run, name, options) => getArtifact(createContext(process.env), run, name, options));
}

export function addCatalogueCommands(program: Command): void {
  const models = program
    .command('models')
    .description('list the language models that runs can name; choose default, fallbacks and disabled ones of the team')
    .option('--all', 'also models that cannot be used, with the reason')
    .option(...asJson)
    .action(async (options) => listModels(createContext(process.env), options));
  models
    .command('default')
    .description('choose the model of runs that name none')
    .argument('<model>', 'id of a model, or none: the default of the service')
    .action(async (model) => chooseDefault(createContext(process.env), model));
  models
    .command('fallbacks')
    .description('choose the models for runs whose provider has an outage, in their order; without one, none')
    .argument('[models...]')
    .action(async (ids) => chooseFallbacks(createContext(process.env), ids));
  models
    .command('disable')
    .description('forbid models to runs of the team, at once')
    .argument('<models...>')
    .action(async (ids) => switchModels(createContext(process.env), 'disable', ids));
  models
    .command('enable')
    .description('permit disabled models again')
    .argument('<models...>')
    .action(async (ids) => switchModels(createContext(process.env), 'enable', ids));
  program
    .command('agents')
    .description('list the agents (skills) that runs can follow')
    .option('--repo <owner/repo>', 'of this repository (default: of all environments)')
    .option('--refresh', 'read the repositories again')
    .option('--all', 'also skills and repositories that cannot be used, with the reason')
    .addOption(new Option('--sort <order>', 'order').choices(['name', 'last_run']).default('name'))
    .option(...asJson)
    .action(async (options) => listAgents(createContext(process.env), options));
  addEnvironmentCommands(program);
}

const environmentFile = 'JSON file with the member config, - for standard input';

function addEnvironmentCommands(program: Command): void {
  const context = () => createContext(process.env);
  const environments = program
    .command('environments')
    .description('manage the environments that runs can name, and share them with people of other teams');
  environments
    .command('list', { isDefault: true })
    .description('list them')
    .option(...asJson)
    .action((options) => listEnvironments(context(), options));
  environments
    .command('show')
    .description('show one as JSON')
    .argument('<environment>')
    .action((uid) => showEnvironment(context(), uid));
  environments
    .command('create')
    .description('create one, and print its UID')
    .argument('<file>', environmentFile)
    .action((file) => createEnvironment(context(), file));
  environments
    .command('update')
    .description('replace the configuration of one')
    .argument('<environment>')
    .argument('<file>', environmentFile)
    .action((uid, file) => updateEnvironment(context(), uid, file));
  environments
    .command('delete')
    .description('delete one; runs that use it keep what they have')
    .argument('<environment>')
    .action((uid) => deleteEnvironment(context(), uid));
  environments
    .command('share')
    .description('let every person who has the link use one')
    .argument('<environment>')
    .option(...asJson)
    .action((uid, options) => shareEnvironment(context(), uid, options));
  environments
    .command('unshare')
    .description('end that for all who came by the link')
    .argument('<environment>')
    .action((uid) => unshareEnvironment(context(), uid));
  const guests = environments.command('guests').description('manage the guests of an environment');
  guests
    .command('list')
    .description('list them')
    .argument('<environment>')
    .option(...asJson)
    .action((uid, options) => listGuests(context(), uid, options));
  guests
    .command('add')
    .description('admit a person of another team')
    .argument('<environment>')
    .argument('<person-uid>', 'as in the profiles of answers')
    .option(...asJson)
    .action((uid, person, options) => addGuest(context(), uid, person, options));
  guests
    .command('remove')
    .description('remove a guest')
    .argument('<environment>')
    .argument('<person-uid>')
    .action((uid, person) => removeGuest(context(), uid, person));
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
    .description('list them, without the values of headers and variables')
    .option(...asJson)
    .action(async (options) => listMcpServers(createContext(process.env), options));
  mcp
    .command('get')
    .description('show one as JSON')
    .argument('<server-id>')
    .action(async (id) => getMcpServer(createContext(process.env), id));
  described(mcp.command('create').description('store one').argument('<name>')).action(async (name, options) =>
    createMcpServer(createContext(process.env), name, options),
  );
  described(mcp.command('update').description('change one').argument('<server-id>'))
    .option('--name <name>', 'new name')
    .action(async (id, options) => updateMcpServer(createContext(process.env), id, options));
  mcp
    .command('delete')
    .description('delete one')
    .argument('<server-id>')
    .action(async (id) => deleteMcpServer(createContext(process.env), id));
}

export function addCodeHostCommands(program: Command): void {
  const codeHosts = program
    .command('code-hosts')
    .description('store the credentials with which private repositories are cloned and pushed');
  codeHosts
    .command('list', { isDefault: true })
    .description('list the credentials, without their secret parts')
    .option(...asJson)
    .action(async (options) => listCodeHosts(createContext(process.env), options));
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
    .action(async (options) => addCodeHost(createContext(process.env), options));
  codeHosts
    .command('delete')
    .description('delete a credential')
    .argument('<credential-id>')
    .action(async (id) => deleteCodeHost(createContext(process.env), id));
}

export function addBudgetCommands(program: Command): void {
  const budget = program.command('budget').description('show and set what the team may spend on models');
  budget
    .command('show', { isDefault: true })
    .description('show the limits, and what was spent this month')
    .option(...asJson)
    .action(async (options) => showBudget(createContext(process.env), options));
  budget
    .command('set')
    .description('set limits; those that are not given stay')
    .option('--monthly <usd>', 'US dollars of a calendar month in UTC, or none')
    .option('--credits <credits>', 'credits that are left from now on, or none; a credit is a US cent')
    .option(...asJson)
    .action(async (options) => setBudget(createContext(process.env), options));
  program
    .command('usage')
    .description('report what the team used of models')
    .option('--from <day>', 'first day in UTC (default: 29 days before the last)')
    .option('--to <day>', 'last day in UTC (default: today)')
    .addOption(
      new Option('--by <groups...>', 'what to break the sums down by (default: day)').choices(UsageDimension.options),
    )
    .option(...asJson)
    .action(async (options) => listUsage(createContext(process.env), options));
}

export function addToolCommands(program: Command): void {
  program
    .command('env')
    .description('print the variables with address and key, for curl and the published clients')
    .addOption(new Option('--shell <shell>', 'whose syntax').choices(shells).default('sh'))
    .option(...asJson)
    .addHelpText('after', '\nFor this shell and all that it starts: eval "$(bin/runyard env)"')
    .action((options) => printEnvironment(createContext(process.env), options));
  program
    .command('api')
    .description('send one request to the API with the key, and print the answer')
    .argument('<method>', 'GET, POST, …')
    .argument('<path>', 'such as /agent/runs; /api/v1 may be left out')
    .option('--data <json>', 'body; - for standard input, @FILE for a file')
    .option('-H, --header <header>', "a header, 'Name: value'; repeat for more", collect)
    .option('-i, --include', 'print status and headers first')
    .action(async (method, path, options) => callApi(createContext(process.env), method, path, options));
  program
    .command('completion')
    .description('print the script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>').choices(completions))
    .addHelpText(
      'after',
      `
  bash   eval "$(bin/runyard completion bash)"          in ~/.bashrc
  zsh    eval "$(bin/runyard completion zsh)"           in ~/.zshrc, after compinit
  fish   bin/runyard completion fish | source           in ~/.config/fish/config.fish`,
    )
    .action((shell) => printCompletion(program, shell));
}
