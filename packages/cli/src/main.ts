/** The runyard command: its subcommands and options. Each subcommand is a file in commands/. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { type RunState, runStates } from '@runyard/contract/runs/run-states';
import { approvalPolicies, workerLossPolicies } from '@runyard/contract/wire/choices';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { addAcceptCommand } from './accept-command.ts';
import {
  addAuditCommand,
  addIdentityCommands,
  addKeyCommands,
  addTeamCommands,
  addUserCommands,
  addWorkerPoolCommands,
} from './access-commands.ts';
import { addAnswerCommands } from './answer-commands.ts';
import { addAutomationCommands } from './automation-commands.ts';
import {
  addArtifactCommands,
  addBudgetCommands,
  addCatalogueCommands,
  addCodeHostCommands,
  addMcpCommands,
  addToolCommands,
} from './command-groups.ts';
import { exitCodesHelp } from './exit-codes.ts';
import { addFactoryCommands } from './factory-commands.ts';
import { root } from './installation.ts';
import { addListWord } from './list-word.ts';
import { loadContext, loadRun } from './load-context.ts';
import { addRunFilters } from './runs-filters.ts';
import { addScheduleCommands } from './schedule-commands.ts';
import { addSecretCommands } from './secret-commands.ts';
import { explainUsageErrors, showHelpOf } from './usage-errors.ts';
import { addWebhookCommands } from './webhook-commands.ts';

// Modules of commands are imported when the command runs: loading all of them takes several times as long as starting Node.
const runHelp = 'id of a run, the beginning of one, or latest';
const asJson = ['--json', 'print JSON'] as const;
const collect = (value: string, before: string[] = []) => [...before, value];

function parseLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > 500)
    throw new InvalidArgumentError('It must be a whole number from 1 to 500.');
  return limit;
}

function parseTail(text: string): number {
  const lines = Number(text);
  if (text.trim() === '' || !Number.isInteger(lines) || lines < 0)
    throw new InvalidArgumentError('It must be a whole number, 0 or more.');
  return lines;
}

function parseState(text: string, before: RunState[] = []): RunState[] {
  const state = runStates.find((each) => each === text.toUpperCase());
  if (state === undefined) throw new InvalidArgumentError(`It must be one of ${runStates.join(', ')}.`);
  return [...before, state];
}

function version(): string {
  const manifest: { version: string } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  return `${manifest.version} (Node ${process.versions.node})`;
}

const program = new Command('runyard')
  .description('Run AI agents in sandboxes on your own machine.')
  .version(version())
  .exitOverride()
  .addHelpText(
    'after',
    `
Settings are environment variables: docs/settings.md.

  bin/runyard run examples/hello.md          the first run; starts everything it needs
  bin/runyard up                             start everything, stay, show address and key
  bin/runyard doctor                         check this machine, and say how to fix problems`,
  );

program.commandsGroup('Runs:');
program
  .command('run')
  .description('start a run and watch it; starts Runyard in the background if it does not run')
  .argument('[prompt]', 'a file, - for standard input, or the prompt itself in quotes; needed without --skill')
  .option('--title <title>', 'title of the run')
  .option('--model <id>', 'language model')
  .option('--name <name>', 'label to group and filter runs by')
  .option('--environment <id>', 'environment, by UID or name: repositories and setup commands')
  .option('--secret <name>', 'a secret that the sandbox gets as a variable of its name; repeat for more', collect)
  .option('--refresh', 'set the environment up from the beginning, also if an earlier run left it prepared')
  .option('--skill <spec>', 'skill to follow: owner/repo:name; see bin/runyard agents')
  .option(
    '--harness <type>',
    `program that works on the prompt: oz (built in), ${presetTypes.join(', ')}; or acp or command, with --harness-command`,
  )
  .option(
    '--harness-command <line>',
    'shell command that starts the program in the sandbox; with command, the program reads the prompt from standard input',
  )
  .addOption(
    new Option(
      '--approval <policy>',
      'ask: before each command and change of a file the agent asks; a terminal asks you here',
    ).choices(approvalPolicies),
  )
  .option('--idle <minutes>', 'how long the sandbox waits for a follow-up after the run, 0 to 60', '0')
  .option('--max-cost <usd>', 'most that the run and the runs it starts may spend on models')
  .option('--max-turns <count>', 'most model answers of the run and the runs it starts')
  .option('--max-minutes <minutes>', 'longest time that the run may work')
  .addOption(
    new Option(
      '--on-worker-loss <policy>',
      'if the machine is lost in the middle of a turn: fail (default), or resume from the last checkpoint',
    ).choices(workerLossPolicies),
  )
  .option(
    '--mcp <server>',
    'an MCP server: the name or id of a stored one, or a JSON file with servers; repeat for more',
    collect,
  )
  .option('--attach <file>', 'a file to put into attachments/ of the workspace; repeat for more', collect)
  .option('--metadata <key=value>', 'a pair to keep with the run; repeat for more', collect)
  .option('--detach', 'print the id and return at once')
  .option('--detach-on-signal', 'at Ctrl-C, SIGTERM, SIGHUP or a closed pipe: leave the run instead of cancelling it')
  .option('--json', 'print each event as a line of JSON, and the run as the last line')
  .addHelpText('after', exitCodesHelp)
  .action(async (source, options) => (await import('./commands/run.ts')).run(await loadContext(), source, options));

const runs = program
  .command('runs')
  .description('list runs, newest first')
  .option('--limit <count>', 'how many', parseLimit, 20)
  .option('--state <state>', 'only runs in this state; repeat for more', parseState)
  .option('--name <name>', 'only runs of this name')
  .option(...asJson)
  .action(async (options) => (await import('./commands/runs.ts')).listRuns(await loadContext(), options));
addRunFilters(runs);
addListWord(runs, async (options) => (await import('./commands/runs.ts')).listRuns(await loadContext(), options));
runs
  .command('get')
  .description('show one run as JSON')
  .argument('<run>', runHelp)
  .action(async (run) => {
    const { getRun } = await import('./commands/runs.ts');
    await getRun(...(await loadRun(run)));
  });

program
  .command('logs')
  .description('show the events of a run')
  .argument('<run>', runHelp)
  .option('--follow', 'stay until the run ends or is BLOCKED')
  .option('--tail <lines>', 'begin with the last lines only', parseTail)
  .option('--exit-status', 'exit with the code of the state of the run, as run does')
  .option(...asJson)
  .addHelpText('after', `\nWithout --exit-status, the exit code is 0 for a run in any state. With it:${exitCodesHelp}`)
  .action(async (run, options) => {
    const { logs } = await import('./commands/logs.ts');
    await logs(...(await loadRun(run)), options);
  });
program
  .command('open')
  .description('open the page of a run in the browser, signed in; without RUN, that of the newest run')
  .argument('[run]', runHelp)
  .option('--print', 'print the one-time link instead, which signs in one browser within a minute')
  .action(async (run, options) => {
    const { open } = await import('./commands/open.ts');
    const [context, runId] = run === undefined ? [await loadContext()] : await loadRun(run);
    await open(context, runId, options);
  });
program
  .command('cancel')
  .description('cancel runs')
  .argument('<runs...>', `${runHelp}; several are cancelled one after the other`)
  .action(async (names) => (await import('./commands/runs.ts')).cancel(await loadContext(), names));
addAnswerCommands(program, runHelp);
program
  .command('rerun')
  .description(
    'start a new run with the prompt, configuration and files of another one, except what the options change',
  )
  .argument('<run>', runHelp)
  .option('--prompt <prompt>', 'another prompt: a file, - for standard input, or the text itself')
  .option('--title <title>', 'another title')
  .option('--model <id>', 'another language model')
  .option('--environment <id>', 'another environment, by UID or name')
  .option('--name <name>', 'another label')
  .option('--max-cost <usd>', 'another limit of what it may spend')
  .option('--metadata <key=value>', 'other pairs instead of those of the run; repeat for more', collect)
  .option('--follow', 'stay until the new run ends or is BLOCKED, and exit with the code of its state')
  .option(...asJson)
  .addHelpText('after', exitCodesHelp)
  .action(async (run, options) => (await import('./commands/rerun.ts')).rerun(await loadContext(), run, options));
addArtifactCommands(program, runHelp);

program.commandsGroup('Start and stop:');
program
  .command('up')
  .description('start service, database and worker, and stay until Ctrl-C')
  .action(async () => (await import('./commands/up.ts')).up(await loadContext()));
program
  .command('down')
  .description('stop the programs of this data folder; asks whether to wait for live runs')
  .option('--wait', 'stop when the live runs have ended; begin no others')
  .option('--force', 'end the live runs: they become ERROR and can be run again')
  .action(async (options) => (await import('./commands/down.ts')).down(await loadContext(), options));
program
  .command('status')
  .description('show the programs of this data folder')
  .option(...asJson)
  .action(async (options) => (await import('./commands/status.ts')).status(await loadContext(), options));
program
  .command('doctor')
  .description('check this machine, and say how to fix problems')
  .option(...asJson)
  .action(async (options) => {
    const { doctor } = await import('./commands/doctor.ts');
    await doctor(await loadContext(), options);
  });
program
  .command('service')
  .description('start only the service (and its embedded database)')
  .action(async () => (await import('./commands/up.ts')).serviceOnly(await loadContext()));
program
  .command('worker')
  .description('start only a worker, for the service at RUNYARD_BASE_URL')
  .action(async () => (await import('./commands/worker.ts')).workerOnly(await loadContext()));
program
  .command('export')
  .description('write the whole database into one file')
  .argument('<file>')
  .action(async (file) => {
    const { exportAll } = await import('./commands/transfer.ts');
    await exportAll(await loadContext(), file);
  });
program
  .command('import')
  .description('fill an empty database from an exported file')
  .argument('<file>')
  .action(async (file) => {
    const { importAll } = await import('./commands/transfer.ts');
    await importAll(await loadContext(), file);
  });

program.commandsGroup('What runs use:');
addCatalogueCommands(program);
addSecretCommands(program);
addAcceptCommand(program);
addMcpCommands(program);
addCodeHostCommands(program);

program.commandsGroup('Schedules, webhooks and automations:');
addScheduleCommands(program);
addWebhookCommands(program);
addAutomationCommands(program);
addFactoryCommands(program);

program.commandsGroup('Team and access:');
addKeyCommands(program);
addTeamCommands(program);
addUserCommands(program);
addIdentityCommands(program);
addBudgetCommands(program);
addAuditCommand(program);
addWorkerPoolCommands(program);

program.commandsGroup('For scripts and other programs:');
addToolCommands(program);
program
  .helpCommand(false)
  .command('help')
  .description('show the help of a command')
  .argument('[command...]', 'such as: runs get')
  .action((names: readonly string[]) => showHelpOf(program, names));

explainUsageErrors(program);

// A reader that closes the pipe (`runyard logs … | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    const { reportFailure } = await import('./report-failure.ts');
    process.exitCode = reportFailure(error);
  }
}
