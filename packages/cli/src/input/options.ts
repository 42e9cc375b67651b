/** Options, arguments and help texts that several commands declare. */
import { type Command, InvalidArgumentError } from 'commander';

export const asJson = ['--json', 'print JSON'] as const;

export const runHelp = 'id of a run, the beginning of one, or latest';
export const factoryHelp = 'UID, alias or name of the factory; bin/runyard factory list shows them';
export const webhookHelp = 'UID or name of the webhook; bin/runyard webhooks list shows them';
export const automationHelp = 'UID or name of the automation; bin/runyard automations list shows them';

/** Collects the values of an option that can be repeated. */
export const collect = (value: string, before: string[] = []): string[] => [...before, value];

/** Reads the number of an option. */
export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError('It must be a positive whole number.');
  return Number(text);
}

/**
 * Adds a hidden subcommand `list` to a command that lists things when it is called without a subcommand. Most groups have a subcommand
 * `list`, so people type the word everywhere. Options before and after the word `list` belong to the command.
 */
// biome-ignore lint/suspicious/noExplicitAny: commander has no type for parsed options
export function addListWord(command: Command, list: (options: any) => Promise<void>): void {
  command.command('list', { hidden: true }).action((_options, word: Command) => list(word.optsWithGlobals()));
}
