import type { Command } from 'commander';
import { bashCompletion } from '../completion/bash.ts';
import { commandTable } from '../completion/command-table.ts';
import { fishCompletion } from '../completion/fish.ts';
import { zshCompletion } from '../completion/zsh.ts';

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };
type Shell = keyof typeof scripts;
export const completions = Object.keys(scripts) as Shell[];

/** Prints the completions of the program and all its subcommands for a shell. */
export function printCompletion(program: Command, shell: Shell): void {
  process.stdout.write(scripts[shell](commandTable(program)));
}
