import type { Command } from 'commander';

const fullName = (command: Command): string =>
  command.parent === null ? 'bin/runyard' : `${fullName(command.parent)} ${command.name()}`;

/**
 * Returns the group whose subcommand the user probably meant with an extra word; null if the command belongs to no group.
 */
function groupOf(command: Command): Command | null {
  if (command.registeredArguments.length > 0) return null;
  if (command.commands.length > 0) return command;
  return command.parent?.parent ? command.parent : null;
}

/**
 * Returns the message without the prefix of the parser. The parser reports a misspelt subcommand as a surplus argument; such a message is
 * replaced.
 */
function usageError(command: Command, text: string): string {
  const group = groupOf(command);
  const surplus = /^error: too many arguments.* got \d+: ([^,\n]*?)[,.\n]/.exec(text)?.[1];
  if (group === null || surplus === undefined) return text.replace(/^error: /, 'runyard: ');
  const rest = group === command ? '' : `, and "${command.name()}" takes no arguments`;
  const names = group.commands.map((each) => each.name()).join(', ');
  return `runyard: ${fullName(group)} has no command "${surplus}"${rest}; its commands are ${names}\n`;
}

/** Prints usage errors in the form of other failures, and names the help of the command. Must be called after all commands were added. */
export function explainUsageErrors(command: Command): void {
  command
    .configureOutput({ outputError: (text, write) => write(usageError(command, text)) })
    .showHelpAfterError(`See: ${fullName(groupOf(command) ?? command)} --help`);
  for (const subcommand of command.commands) explainUsageErrors(subcommand);
}

/** Prints the help of the named command, such as `runs get`. A name without a command counts as wrong usage. */
export function showHelpOf(program: Command, names: readonly string[]): void {
  let command = program;
  for (const name of names) {
    const next = command.commands.find((each) => each.name() === name);
    if (next === undefined) {
      if (command === program) command.error(`error: unknown command '${name}'`);
      const commandNames = command.commands.map((each) => each.name()).join(', ');
      const has = commandNames === '' ? 'it has no commands' : `its commands are ${commandNames}`;
      command.error(`error: ${fullName(command)} has no command "${name}"; ${has}`);
    } else command = next;
  }
  command.outputHelp();
}
