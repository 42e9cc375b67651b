import type { Client } from '@runyard/client';
import { isSettled, isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { type Command, InvalidArgumentError } from 'commander';
import type { Context } from '../../context/context.ts';
import { exitCodeOf, exitCodesHelp, interruptedCode } from '../../exits/exit-codes.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson, runHelp } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { contextAndRunId } from '../../service/run-id.ts';
import { answerLines } from './view/question.ts';
import { isWaiting, waitLines } from './view/wait-notes.ts';
import { showPast, watch } from './watch.ts';

interface LogsOptions {
  readonly follow?: true;
  readonly json?: true;
  /** Of the events that exist when the command starts, show only this number of last lines. */
  readonly tail?: number;
  /** Exits with the code of the run's state. */
  readonly exitStatus?: true;
}

/**
 * Shows the events of a run until now. With `follow`, continues until the run has ended or waits for a person. A run whose setup
 * failed has already ended, but its sandbox stays open for follow-ups. For such a run, continues until the current turn in this
 * sandbox ends. Sets the exit code.
 */
export async function logs(context: Context, runId: string, options: LogsOptions): Promise<void> {
  const client = connect(context);
  const stop = new AbortController();
  const onInterrupt = () => stop.abort();
  if (options.follow) process.once('SIGINT', onInterrupt);
  try {
    const item = await client.getRun({ params: { runId } });
    if (options.exitStatus && !options.follow && !isSettled(item.state))
      throw new Failure(`the run is ${item.state} and has no exit status yet: add --follow`, 2);
    const state = await show(context, client, item, options, stop.signal);
    if (options.exitStatus) process.exitCode = exitCodeOf(state);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    process.exitCode = interruptedCode;
  } finally {
    process.off('SIGINT', onInterrupt);
  }
}

/** Shows the events for `logs`. Returns the state of the run at the end. */
async function show(
  context: Context,
  client: Client,
  before: RunItem,
  options: LogsOptions,
  signal: AbortSignal,
): Promise<RunItem['state']> {
  const { run_id: runId } = before;
  const json = options.json === true;
  const follow = options.follow === true;
  // If the run has ended, follows the stream in `showPast`, because this stream ends by itself. It ends at once if no turn is in progress.
  const stays = follow && isTerminal(before.state);
  const past = await showPast(context, runId, { json, signal, tail: options.tail, follow: stays });
  const waits = past.lastState === 'BLOCKED';
  const now = stays || (follow && waits) ? await client.getRun({ params: { runId } }) : before;
  if (follow && !stays && now.state !== 'BLOCKED') {
    const item = await watch(context, client, runId, past, { json, signal });
    signal.throwIfAborted();
    if (item?.state === 'BLOCKED') sayStopped(context);
    return item?.state ?? now.state;
  }
  if (!json && now.status_message && (isWaiting(now.state) || now.state === 'SUCCEEDED'))
    for (const line of waitLines(now.status_message.message)) context.out(`  ${context.colours.yellow(line)}\n`);
  if (now.blocked_on && !json)
    for (const line of answerLines(runId, now.blocked_on.kind, context.colours)) context.out(`  ${line}\n`);
  if (follow && now.state === 'BLOCKED') sayStopped(context);
  return now.state;
}

function sayStopped(context: Context): void {
  context.report('stopped following: the run is BLOCKED until a person answers it with one of the commands above');
}

function parseTail(text: string): number {
  const lines = Number(text);
  if (text.trim() === '' || !Number.isInteger(lines) || lines < 0)
    throw new InvalidArgumentError('It must be a whole number, 0 or more.');
  return lines;
}

/** Declares the command `logs`. */
export function declareLogs(command: Command): void {
  command
    .argument('<run>', runHelp)
    .option('--follow', 'stay until the run ends or is BLOCKED')
    .option('--tail <lines>', 'begin with the last lines only', parseTail)
    .option('--exit-status', 'exit with the code of the state of the run, as run does')
    .option(...asJson)
    .addHelpText(
      'after',
      `\nWithout --exit-status, the exit code is 0 for a run in any state. With it:${exitCodesHelp}`,
    )
    .action(async (run, options) => {
      await logs(...(await contextAndRunId(run)), options);
    });
}
