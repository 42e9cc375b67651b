import { readFileSync } from 'node:fs';
import { ApiError, type Client } from '@runyard/client';
import { isSettled } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import { connect, followRun } from '../api.ts';
import { type Context, serviceOrigin } from '../context.ts';
import { untilSettled } from '../live/follow.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { renderSummary, type SummaryArtifact } from '../live/summary.ts';
import { createLiveView } from '../live/view.ts';
import { requireSameSettings } from '../same-settings.ts';
import { ensureSandboxTool } from '../sandbox-tool.ts';
import { startInBackground } from '../supervise/start-background.ts';
import { buildRunRequest, type RunOptions } from './run-request.ts';

export interface RunCommandOptions extends RunOptions {
  readonly json?: true;
  readonly detach?: true;
}

/** Creates a run and shows what the agent does until the run ends. Starts Runyard first if it does not run. Sets the exit code. */
export async function run(context: Context, source: string, options: RunCommandOptions): Promise<void> {
  const request = buildRunRequest(source, options, () => readFileSync(0, 'utf8'));
  const isFresh = await ensureStarted(context);
  const client = connect(context);
  const created = await client.createRun({ body: request });
  if (options.detach) {
    const item = await client.getRun({ params: { runId: created.run_id } });
    context.out(options.json ? `${harmlessJson(created)}\n` : `${created.run_id}\n`);
    if (!options.json)
      context.report(`created; page ${item.session_link ?? ''}; follow: bin/runyard logs ${created.run_id} --follow`);
    return;
  }
  if (!options.json) context.out(`${context.colours.bold('run')} ${created.run_id}\n`);
  // If Runyard was just started, its worker may not be connected yet.
  if (created.at_capacity && !isFresh) context.report('no worker has a free slot at the moment: the run waits for one');
  const leave = new AbortController();
  const restore = cancelOnInterrupt(context, client, created.run_id, leave);
  try {
    const state = await watch(context, client, created.run_id, { json: options.json === true, signal: leave.signal });
    // A cancel that is still being retried would keep the process alive.
    if (state === null) process.exit(130);
    process.exitCode = state === 'SUCCEEDED' ? 0 : 1;
  } finally {
    restore();
  }
}

/**
 * Starts service, database and worker in the background, unless a service runs here or the settings name another one.
 * @returns true if it started them
 */
async function ensureStarted(context: Context): Promise<boolean> {
  requireSameSettings(context);
  if (serviceOrigin(context) !== null) return false;
  await ensureSandboxTool(context.settings, context.env, context.report);
  context.report('starting service, database and worker in the background ...');
  const claim = await startInBackground(context.folder, context.env);
  // Another command may have started it at the same time.
  requireSameSettings(context);
  context.report(`running at ${claim.origin} (process ${claim.pid}); it stays; stop it with: bin/runyard down`);
  return true;
}

/**
 * Shows a run's events as they come, then a summary.
 * @returns the final state, or `null` if `signal` ended the watching earlier
 */
export async function watch(
  context: Context,
  client: Client,
  runId: string,
  options: { readonly json: boolean; readonly signal: AbortSignal },
): Promise<RunState | null> {
  const view = createLiveView(context.colours);
  try {
    for await (const event of untilSettled(followRun(context, runId, { signal: options.signal }))) {
      if (options.json) context.out(`${harmlessJson(event)}\n`);
      // The first line of the summary shows the final state.
      else if (event.type !== 'state' || !isSettled(event.state)) context.out(view.render(event));
    }
  } catch (error) {
    if (!options.signal.aborted) throw error;
    return null;
  }
  if (!options.json) context.out(view.end());
  const item = await client.getRun({ params: { runId } });
  if (options.json) context.out(`${harmlessJson({ type: 'run', run: item })}\n`);
  else if (isSettled(item.state))
    context.out(renderSummary(item, await withDownloads(client, item.artifacts ?? []), context.colours));
  return item.state;
}

/** Adds the download URL to each file-like artifact that still exists. */
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

const cancelPatienceMs = 35_000;

/** Cancels a run. Retries while the run is being assigned to a worker (PENDING, at most 30 s), because it cannot be cancelled then. */
export async function cancelWithPatience(client: Client, runId: string): Promise<void> {
  const deadline = performance.now() + cancelPatienceMs;
  for (;;) {
    try {
      await client.cancelRun({ params: { runId } });
      return;
    } catch (error) {
      if (!(error instanceof ApiError && error.retryable) || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

/** Makes the first Ctrl-C cancel the run and the second one stop watching. Returns a function that removes the handler. */
function cancelOnInterrupt(context: Context, client: Client, runId: string, leave: AbortController): () => void {
  let asked = false;
  const onInterrupt = () => {
    if (asked) {
      context.report(`left; look at the run with: bin/runyard logs ${runId}`);
      leave.abort();
      return;
    }
    asked = true;
    context.report('cancelling the run ... (Ctrl-C again: leave without waiting)');
    cancelWithPatience(client, runId).catch((error: unknown) => {
      context.report(`could not cancel: ${harmlessLine(error instanceof Error ? error.message : String(error))}`);
    });
  };
  process.on('SIGINT', onInterrupt);
  return () => process.off('SIGINT', onInterrupt);
}
