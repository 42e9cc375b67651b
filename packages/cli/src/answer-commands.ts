/** Subcommands that say something to a run: a follow-up, or the answer to its request. */
import type { Command } from 'commander';
import { decide, send } from './commands/answer.ts';
import { createContext } from './context.ts';
import { exitCodesHelp } from './exit-codes.ts';
import { runIdOf } from './run-id.ts';

const watchAfter = ['--follow', 'watch what the run does with it, and exit with the code of its state'] as const;

export function addAnswerCommands(program: Command, runHelp: string): void {
  program
    .command('send')
    .description('send a follow-up to a run: an answer or a new instruction')
    .argument('<run>', runHelp)
    .argument('<message>', 'the text, or - for standard input')
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const context = createContext(process.env);
      await send(context, await runIdOf(context, run), message, options);
    });
  program
    .command('approve')
    .description('approve the request of a run')
    .argument('<run>', runHelp)
    .argument('[message]', 'what the agent should know about it')
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const context = createContext(process.env);
      await decide(context, await runIdOf(context, run), 'approve', message, options);
    });
  program
    .command('deny')
    .description('deny the request of a run')
    .argument('<run>', runHelp)
    .argument('[message]', 'why, or what to do instead')
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const context = createContext(process.env);
      await decide(context, await runIdOf(context, run), 'deny', message, options);
    });
}
