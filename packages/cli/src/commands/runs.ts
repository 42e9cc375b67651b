import { isSettled } from '@runyard/contract/run-states';
import type { RunItem } from '@runyard/contract/runs';
import type { RunState } from '@runyard/contract/states';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { formatDuration, parseIsoDuration } from '../live/amounts.ts';
import type { Colours } from '../live/colours.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { questionLine } from '../live/question.ts';
import { firstRuns } from './first-runs.ts';
import { cancelWithPatience } from './run.ts';

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
