/** Subcommands that send a run a follow-up, or the answer to its request. */
import type { Command } from 'commander';
import { exitCodesHelp } from './exit-codes.ts';
import { loadRun } from './load-context.ts';

const collect = (value: string, before: string[] = []) => [...before, value];
const loadAnswer = () => import('./commands/answer.ts');

const watchAfter = ['--follow', 'watch what the run does with it, and exit with the code of its state'] as const;

export function addAnswerCommands(program: Command, runHelp: string): void {
  program
    .command('send')
    .description('send a follow-up to a run: an answer or a new instruction')
    .argument('<run>', runHelp)
    .argument('<message>', 'the text, or - for standard input')
    .option('--attach <file>', 'a file to put into attachments/ of the workspace; repeat for more', collect)
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const [context, runId] = await loadRun(run);
      await (await loadAnswer()).send(context, runId, message, options);
    });
  program
    .command('approve')
    .description('approve the request of a run')
    .argument('<run>', runHelp)
    .argument('[message]', 'a message for the agent')
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const [context, runId] = await loadRun(run);
      await (await loadAnswer()).decide(context, runId, 'approve', message, options);
    });
  program
    .command('deny')
    .description('deny the request of a run')
    .argument('<run>', runHelp)
    .argument('[message]', 'the reason, or another instruction')
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const [context, runId] = await loadRun(run);
      await (await loadAnswer()).decide(context, runId, 'deny', message, options);
    });
}
