/** The runyard command. `command-list.ts` lists its subcommands; each is declared and implemented in a folder of commands/. */
import { productVersion } from '@runyard/system/product-version';
import { Command, CommanderError, Help, Option } from 'commander';
import { addCommands } from './program/add-commands.ts';
import { explainUsageErrors, showHelpOf } from './program/usage-errors.ts';

const program = new Command('runyard')
  .description('Run AI agents in sandboxes on your own machine.')
  .version(`${productVersion()} (Node ${process.versions.node})`)
  .option('--env-file <file>', 'also take settings from this file, one NAME=value a line')
  .addOption(new Option('--in-unit', 'set if the command already runs in a unit of systemd').hideHelp())
  .exitOverride()
  .addHelpText(
    'after',
    `
Settings are environment variables: docs/settings.md.

  bin/runyard run examples/hello.md   the first run; starts all programs
  bin/runyard up                      start all programs, show address and key
  bin/runyard doctor                  check this machine, say how to fix problems`,
  );

const list = addCommands(program, explainUsageErrors);
program
  .helpCommand(false)
  .command('help')
  .description('show the help of a command')
  .argument('[command...]', 'such as: runs get')
  .action(async (names: readonly string[]) => {
    const command = program.commands.find((each) => each.name() === names[0]);
    if (command !== undefined) await list.load(command);
    showHelpOf(program, names);
  });
program.hook('preSubcommand', (_, command) => list.load(command));
program.hook('preAction', async (_, command) => {
  const { envFile, inUnit } = program.opts<{ readonly envFile?: string; readonly inUnit?: true }>();
  if (envFile !== undefined) (await import('./context/env-file.ts')).addEnvFile(envFile);
  else if (inUnit === undefined && list.isForUnit(command))
    await (await import('./machine/installed-units.ts')).continueInUnit();
});
// For the help, takes the options and arguments of commands from the command list, because the modules of the commands are not loaded. The
// help is configured after all commands were added, because a command that is added later would inherit this configuration.
const { subcommandTerm } = new Help();
program.configureHelp({
  subcommandTerm: (command) => (command.name() === 'help' ? subcommandTerm(command) : list.termOf(command)),
});

explainUsageErrors(program);

// It is not an error if the reader of a pipe closes the pipe, as in `runyard logs … | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    const { reportFailure } = await import('./program/report-failure.ts');
    process.exitCode = reportFailure(error);
  }
}
