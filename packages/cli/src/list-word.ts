import type { Command } from 'commander';

/**
 * Accepts the word `list` after a command that lists when no word follows: most groups have a subcommand of this name, so people type it
 * everywhere. Options before and after the word belong to the command.
 */
// biome-ignore lint/suspicious/noExplicitAny: commander has no type for parsed options
export function addListWord(command: Command, list: (options: any) => Promise<void>): void {
  command.command('list', { hidden: true }).action((_options, word: Command) => list(word.optsWithGlobals()));
}
