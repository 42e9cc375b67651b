import { isSettled, isTerminal } from '@runyard/contract/run-states';
import type { RunItem } from '@runyard/contract/runs';
import type { RunState } from '@runyard/contract/states';
import { connect, followRun } from '../api.ts';
import type { Context } from '../context.ts';
import { formatDuration, parseIsoDuration } from '../live/amounts.ts';
import type { Colours } from '../live/colours.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { answerLines, questionLine } from '../live/question.ts';
import { createLiveView } from '../live/view.ts';
import { isWaiting, waitLines } from '../live/wait-notes.ts';
import { firstRuns } from './first-runs.ts';
import { cancelWithPatience, watch } from './run.ts';

/** Lists runs, newest first. */
export async function listRuns(
  context: Context,
  options: {
    readonly limit: number;
    readonly state?: readonly RunState[];
    readonly name?: string;
    readonly json?: true;
  },
): Promise<void> {
  const query = {
    sort_by: 'created_at' as const,
    ...(options.state ? { state: [...options.state] } : {}),
    ...(options.name ? { name: options.name } : {}),
  };
  const page = await firstRuns(connect(context), query, options.limit);
  if (options.json) {
    context.out(`${harmlessJson(page)}\n`);
    return;
  }
  if (page.runs.length === 0) context.report('no runs');
  for (const item of page.runs) context.out(`${runLine(item, context.colours)}\n`);
  if (page.runs.some((item) => item.blocked_on))
    context.report("answer a run: bin/runyard approve RUN, deny RUN, or send RUN 'ANSWER'");
  if (page.page_info.has_next_page) context.report('there are more runs; --limit shows up to 500');
}

function runLine(item: RunItem, colours: Colours): string {
  const paint =
    item.state === 'SUCCEEDED'
      ? colours.green
      : isSettled(item.state) && item.state !== 'CANCELLED'
        ? colours.red
        : colours.yellow;
  const took = item.run_time === undefined ? undefined : parseIsoDuration(item.run_time);
  const created = item.created_at.slice(0, 19).replace('T', ' ');
  const line = `${item.run_id}  ${paint(item.state.padEnd(10))}  ${created}  ${(took === undefined ? '' : formatDuration(took)).padStart(12)}  ${harmlessLine(item.title, 60)}`;
  if (!item.blocked_on) return line;
  return `${line}\n  ${colours.yellow('?')} ${harmlessLine(questionLine(item, item.blocked_on), 150)}`;
}

/** Shows one run as JSON. */
export async function getRun(context: Context, runId: string): Promise<void> {
  const item = await connect(context).getRun({ params: { runId } });
  context.out(`${harmlessJson(item, 2)}\n`);
}

/**
 * Shows what a run did until now. With `follow`, until it settles; for a run that has ended, until the present turn in the sandbox
 * of its failed setup ends.
 */
export async function logs(
  context: Context,
  runId: string,
  options: { readonly follow?: true; readonly json?: true },
): Promise<void> {
  const client = connect(context);
  const item = await client.getRun({ params: { runId } });
  if (options.follow && !isSettled(item.state)) {
    const stop = new AbortController();
    const onInterrupt = () => stop.abort();
    process.once('SIGINT', onInterrupt);
    await watch(context, client, runId, { json: options.json === true, signal: stop.signal });
    process.off('SIGINT', onInterrupt);
    return;
  }
  const view = createLiveView(context.colours);
  const { signal } = new AbortController();
  // The stream of an ended run ends by itself: at once if no turn is in progress.
  const stays = options.follow === true && isTerminal(item.state);
  for await (const event of followRun(context, runId, { signal, ...(stays ? {} : { follow: false }) })) {
    context.out(options.json ? `${harmlessJson(event)}\n` : view.render(event));
  }
  if (!options.json && item.status_message && (isWaiting(item.state) || item.state === 'SUCCEEDED'))
    for (const line of waitLines(item.status_message.message)) context.out(`  ${context.colours.yellow(line)}\n`);
  const { blocked_on: asked } = stays ? await client.getRun({ params: { runId } }) : item;
  if (asked && !options.json)
    for (const line of answerLines(runId, asked.kind, context.colours)) context.out(`  ${line}\n`);
}

/** Cancels a run. */
export async function cancel(context: Context, runId: string): Promise<void> {
  const client = connect(context);
  await cancelWithPatience(client, runId);
  const { state } = await client.getRun({ params: { runId } });
  context.out(
    state === 'CANCELLED'
      ? `${runId} is cancelled\n`
      : `${runId} stays ${state}: its turn had ended, and the sandbox in which its agent waited ends now\n`,
  );
}
