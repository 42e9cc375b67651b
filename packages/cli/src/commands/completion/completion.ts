import { Argument, type Command } from 'commander';
import { processContext } from '../../context/context.ts';
import { bashCompletion } from './bash.ts';
import { commandTable } from './command-table.ts';
import { fishCompletion } from './fish.ts';
import { zshCompletion } from './zsh.ts';

/** Shells for which the command has a completion script. */
const completedShells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof completedShells)[number];
const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } satisfies Record<Shell, unknown>;

/** Prints the completions of the program and all its subcommands for a shell. */
function printCompletion(program: Command, shell: Shell): void {
  processContext().out(scripts[shell](commandTable(program)));
}

/** Declares the command `completion`. `loadAll` declares the options and subcommands of all commands. */
export function declareCompletion(command: Command, loadAll: () => Promise<void>): void {
  command
    .addArgument(new Argument('<shell>').choices(completedShells))
    .addHelpText(
      'after',
      `
  bash   eval "$(bin/runyard completion bash)"          in ~/.bashrc
  zsh    eval "$(bin/runyard completion zsh)"           in ~/.zshrc, after compinit
  fish   bin/runyard completion fish | source           in ~/.config/fish/config.fish`,
    )
    .action(async (shell) => {
      await loadAll();
      printCompletion(command.parent ?? command, shell);
    });
}
