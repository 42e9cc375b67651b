import type { Client } from '@runyard/client';
import type { Decision } from '@runyard/contract/runs/approvals';
import type { Command } from 'commander';
import type { Context } from '../../context/context.ts';
import { exitCodeOf, exitCodesHelp, interruptedCode } from '../../exits/exit-codes.ts';
import { Failure } from '../../exits/failure.ts';
import { readInput } from '../../input/input-file.ts';
import { collect, runHelp } from '../../input/options.ts';
import { readAttachments } from '../../input/read-attachments.ts';
import { connect } from '../../service/connect.ts';
import { contextAndRunId } from '../../service/run-id.ts';
import { createAsker, ownTerminal } from './asker.ts';
import { watchInterruptions } from './interruption.ts';
import { decisionLines } from './view/question.ts';
import { showPast, watch } from './watch.ts';

interface AnswerOptions {
  /** Shows the events of the run after the answer. */
  readonly follow?: true;
  /** Approves for the rest of the run. */
  readonly restOfRun?: true;
}

/** Sends a follow-up: an answer if the run asks a question, otherwise a new instruction. `-` reads the text from standard input. */
export async function send(
  context: Context,
  runId: string,
  text: string,
  options: AnswerOptions & { readonly attach?: readonly string[]; readonly anew?: true },
): Promise<void> {
  const message = text === '-' ? readInput('-').toString('utf8') : text;
  if (message.trim() === '') throw new Failure(`the message is empty${text === '-' ? ' (standard input)' : ''}`, 2);
  const attachments = readAttachments(options.attach);
  const body = {
    message,
    ...(attachments.length > 0 ? { attachments } : {}),
    ...(options.anew ? { workspace: 'changes' as const } : {}),
  };
  const client = connect(context);
  await answered(context, client, runId, options, async () => {
    await client.sendFollowup({ params: { runId }, body });
    return attachments.length === 0
      ? 'sent'
      : `sent with ${attachments.length === 1 ? 'a file' : `${attachments.length} files`}`;
  });
}

/**
 * Approves or denies the open request of the run. The decision applies only to this request and not to a later one.
 * @throws Failure if the run asks no question
 */
async function decide(
  context: Context,
  runId: string,
  decision: Decision,
  message: string | undefined,
  options: AnswerOptions,
): Promise<void> {
  const client = connect(context);
  const { state, blocked_on: asked } = await client.getRun({ params: { runId } });
  if (!asked) throw new Failure(`the run is ${state} and asks nothing`);
  const { request_id } = asked;
  await answered(context, client, runId, options, async () => {
    await client.sendFollowup({
      params: { runId },
      body: {
        decision,
        request_id,
        ...(message === undefined ? {} : { message }),
        ...(options.restOfRun ? { allow_for: 'run' as const } : {}),
      },
    });
    return decisionLines(decision, asked.title).join('\n');
  });
}

/**
 * Sends the answer and prints a confirmation. With `follow`, shows later events until the run ends, and then sets the exit code.
 * Ctrl-C stops only this command and not the run.
 */
async function answered(
  context: Context,
  client: Client,
  runId: string,
  { follow }: AnswerOptions,
  give: () => Promise<string>,
): Promise<void> {
  if (!follow) {
    context.out(`${await give()}\nfollow: bin/runyard logs ${runId} --follow\n`);
    return;
  }
  const interruption = watchInterruptions();
  try {
    const { first: signal } = interruption;
    const past = await showPast(context, runId, { json: false, signal, tail: 0 });
    context.out(`${await give()}\n`);
    const terminal = ownTerminal();
    const asker = terminal && createAsker(context, client, runId, terminal, signal);
    const item = await watch(context, client, runId, past, { json: false, signal, asker });
    if (item === null)
      context.report(`${signal.reason}: the run continues; follow: bin/runyard logs ${runId} --follow`);
    process.exitCode = item === null ? interruptedCode : exitCodeOf(item.state);
  } finally {
    interruption.restore();
  }
}

const watchAfter = ['--follow', 'watch the run afterwards, and exit with the code of its state'] as const;

/** Declares the command `send`. */
export function declareSend(command: Command): void {
  command
    .argument('<run>', runHelp)
    .argument('<message>', 'the text, or - for standard input')
    .option('--attach <file>', 'a file to put into attachments/ of the workspace; repeat for more', collect)
    .option('--anew', 'begin anew, in a new sandbox with only the stored changes of the repositories')
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const [context, runId] = await contextAndRunId(run);
      await send(context, runId, message, options);
    });
}

/** Declares the command `approve`. */
export function declareApprove(command: Command): void {
  command
    .argument('<run>', runHelp)
    .argument('[message]', 'a message for the agent')
    .option('--rest-of-run', 'also approve the actions that the request names, for the rest of the run')
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const [context, runId] = await contextAndRunId(run);
      await decide(context, runId, 'approve', message, options);
    });
}

/** Declares the command `deny`. */
export function declareDeny(command: Command): void {
  command
    .argument('<run>', runHelp)
    .argument('[message]', 'the reason, or another instruction')
    .option(...watchAfter)
    .addHelpText('after', exitCodesHelp)
    .action(async (run, message, options) => {
      const [context, runId] = await contextAndRunId(run);
      await decide(context, runId, 'deny', message, options);
    });
}
