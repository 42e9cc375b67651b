import type { Command } from 'commander';

const fullName = (command: Command): string =>
  command.parent === null ? 'bin/runyard' : `${fullName(command.parent)} ${command.name()}`;

/** Returns the group whose subcommand a surplus word was probably meant to be; null: the command belongs to none. */
function groupOf(command: Command): Command | null {
  if (command.registeredArguments.length > 0) return null;
  if (command.commands.length > 0) return command;
  return command.parent?.parent ? command.parent : null;
}

/** Returns the message without the prefix of the parser. A misspelt subcommand arrives as surplus argument of the default one. */
function usageError(command: Command, text: string): string {
  const group = groupOf(command);
  const surplus = /^error: too many arguments.* got \d+: ([^,\n]*?)[,.\n]/.exec(text)?.[1];
  if (group === null || surplus === undefined) return text.replace(/^error: /, 'runyard: ');
  const rest = group === command ? '' : `, and "${command.name()}" takes no arguments`;
  return `runyard: ${fullName(group)} has no command "${surplus}"${rest}\n`;
}

/** Makes wrong usage look as other failures do, and names the help of the command. Call after all commands are there. */
export function explainUsageErrors(command: Command): void {
  command
    .configureOutput({ outputError: (text, write) => write(usageError(command, text)) })
    .showHelpAfterError(`See: ${fullName(groupOf(command) ?? command)} --help`);
  for (const subcommand of command.commands) explainUsageErrors(subcommand);
}
