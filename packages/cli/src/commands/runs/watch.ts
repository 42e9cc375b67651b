import type { Client } from '@runyard/client';
import type { LiveEvent } from '@runyard/contract/runs/live-events';
import { isSettled, isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { RunState } from '@runyard/contract/runs/states';
import type { Context } from '../../context/context.ts';
import { followRun } from '../../service/connect.ts';
import { harmlessJson } from '../../terminal/harmless.ts';
import { lastLines } from '../../terminal/long-text.ts';
import type { Asker } from './asker.ts';
import { renderSummary, type SummaryArtifact } from './view/summary.ts';
import { createLiveView, type LiveView } from './view/view.ts';
import { showWaits } from './view/wait-notes.ts';

/** The last event of a run that a command has shown, and the state of the view after this event. */
interface Shown {
  readonly view: LiveView;
  /** Id of the last event that was shown. Undefined if no event was shown yet. */
  readonly lastEventId: string | undefined;
  readonly lastState: RunState | undefined;
}

interface WatchOptions {
  readonly json: boolean;
  readonly signal: AbortSignal;
  /** Asks the person at this terminal if the run has a question. If it is absent, the command ends when the run is BLOCKED. */
  readonly asker?: Asker | undefined;
  /** Milliseconds during which the command does not print why the run waits. */
  readonly quietMs?: number;
}

/** Returns the position before the first event. */
export const nothingShown = (context: Context): Shown => ({
  view: createLiveView(context.colours),
  lastEventId: undefined,
  lastState: undefined,
});

const textOf = (view: LiveView, event: LiveEvent, json: boolean): string =>
  json ? `${harmlessJson(event)}\n` : view.render(event);

/**
 * Shows the events that exist now. With `tail`, shows only their last `tail` lines. With `follow`, shows all events until the end of
 * the stream; the lines are counted from this end, so the stream must end by itself.
 */
export async function showPast(
  context: Context,
  runId: string,
  options: {
    readonly json: boolean;
    readonly signal: AbortSignal;
    readonly tail?: number | undefined;
    readonly follow?: boolean;
  },
): Promise<Shown> {
  const { json, signal, tail, follow } = options;
  let position = nothingShown(context);
  let lastText = '';
  for await (const { id, event } of followRun(context, runId, { signal, ...(follow ? {} : { follow: false }) })) {
    position = { ...position, lastEventId: id, ...(event.type === 'state' ? { lastState: event.state } : {}) };
    const text = textOf(position.view, event, json);
    if (tail === undefined) context.out(text);
    else lastText = lastLines(lastText + text, tail);
  }
  if (lastText !== '') context.out(lastText);
  return position;
}

/**
 * Shows further events of a run until the run has ended, or until the run is BLOCKED and there is no asker. Then shows a summary.
 * @returns the run at the end, or `null` if `signal` stopped the command earlier
 */
export async function watch(
  context: Context,
  client: Client,
  runId: string,
  position: Shown,
  options: WatchOptions,
): Promise<RunItem | null> {
  const { json, asker } = options;
  const { view, lastEventId } = position;
  const around = asker?.around ?? ((show: () => void) => show());
  const signal = asker ? AbortSignal.any([options.signal, asker.left]) : options.signal;
  const here = {
    ...context,
    report: (message: string) => around(() => context.report(message)),
    out: (text: string) => around(() => context.out(text)),
  };
  const notes = json ? undefined : showWaits(here, client, runId, () => view.end(), options.quietMs);
  let item: RunItem | undefined;
  try {
    for await (const { event } of followRun(here, runId, { signal, ...(lastEventId ? { lastEventId } : {}) })) {
      const settled = event.type === 'state' && isSettled(event.state);
      // Prints no line for a state in which the command ends or asks, because the summary or the prompt shows this state.
      const text = json || !settled ? textOf(view, event, json) : '';
      if (text !== '') around(() => context.out(asker?.isAsking() ? text + view.end() : text));
      await asker?.update(event);
      if (!settled) continue;
      // Reads the present state of the run, because the event may be old: the run may have continued after it was BLOCKED or had ended.
      item = await client.getRun({ params: { runId } });
      if (isTerminal(item.state) || (item.state === 'BLOCKED' && !asker)) break;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    if (options.signal.aborted) return null;
  } finally {
    notes?.stop();
    asker?.close();
  }
  if (!json) context.out(view.end());
  item = await client.getRun({ params: { runId } });
  if (json) context.out(`${harmlessJson({ type: 'run', run: item })}\n`);
  else if (isSettled(item.state))
    context.out(renderSummary(item, await withDownloads(client, item.artifacts ?? []), context.colours));
  return item;
}

/** Adds the download URL to each artifact that has a file and still exists. */
async function withDownloads(client: Client, items: readonly SummaryArtifact['item'][]): Promise<SummaryArtifact[]> {
  return await Promise.all(
    items.map(async (item): Promise<SummaryArtifact> => {
      if (item.artifact_type !== 'FILE' && item.artifact_type !== 'SCREENSHOT') return { item };
      try {
        const read = await client.getArtifact({ params: { artifactUid: item.data.artifact_uid } });
        return read.artifact_type === 'PLAN' ? { item } : { item, downloadUrl: read.data.download_url };
      } catch {
        return { item };
      }
    }),
  );
}
