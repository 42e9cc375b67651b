import type { Command } from 'commander';
import { bashCompletion } from '../completion/bash.ts';
import { commandTable } from '../completion/command-table.ts';
import { fishCompletion } from '../completion/fish.ts';
import { zshCompletion } from '../completion/zsh.ts';
import type { completedShells } from '../shells.ts';

type Shell = (typeof completedShells)[number];
const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } satisfies Record<Shell, unknown>;

/** Prints the completions of the program and all its subcommands for a shell. */
export function printCompletion(program: Command, shell: Shell): void {
  process.stdout.write(scripts[shell](commandTable(program)));
}
