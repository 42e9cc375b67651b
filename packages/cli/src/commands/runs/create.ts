import { ApiError, type Client } from '@runyard/client';
import type { Command } from 'commander';
import { type Context, processContext, serviceOrigin } from '../../context/context.ts';
import { exitCodeOf, exitCodesHelp, interruptedCode } from '../../exits/exit-codes.ts';
import { Failure } from '../../exits/failure.ts';
import { readInput } from '../../input/input-file.ts';
import { collect } from '../../input/options.ts';
import { ensureSandboxTool } from '../../machine/sandbox-tool.ts';
import { inOptionWords } from '../../service/command-words.ts';
import { connect, describeProblem } from '../../service/connect.ts';
import { requireSameSettings } from '../../service/same-settings.ts';
import { startInBackground } from '../../supervise/start-background.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';
import { createAsker, ownTerminal } from './asker.ts';
import { cancelWithPatience } from './cancel-with-patience.ts';
import { type Interruption, watchInterruptions } from './interruption.ts';
import { addRunOptions } from './options.ts';
import { buildRunRequest, type RunOptions } from './request.ts';
import { workerStartMs } from './view/wait-notes.ts';
import { nothingShown, watch } from './watch.ts';
import { withIds } from './with-ids.ts';

interface RunCommandOptions extends RunOptions {
  readonly json?: true;
  readonly detach?: true;
  /** If this is set, an interruption stops only this command and does not cancel the run. */
  readonly detachOnSignal?: true;
}

/** Creates a run and shows the agent's actions until the run ends. If Runyard does not run, starts it first. Sets the exit code. */
export async function run(context: Context, source: string | undefined, options: RunCommandOptions): Promise<void> {
  const request = buildRunRequest(source, options, () => readInput('-').toString('utf8'));
  const interruption = watchInterruptions();
  let look = '';
  interruption.second.addEventListener('abort', () => {
    context.report(`left${look && `; look at the run with: ${look}`}`);
    process.exit(interruptedCode);
  });
  try {
    const isFresh = await ensureStarted(context, interruption.first);
    const client = connect(context);
    const body = await withIds(client, request);
    const created = await client.createRun({ body }).catch((error: unknown) => {
      throw error instanceof ApiError && error.problem.status === 400
        ? new Failure(inOptionWords(describeProblem(error)))
        : error;
    });
    look = `bin/runyard logs ${created.run_id}`;
    if (options.detach) {
      const item = await client.getRun({ params: { runId: created.run_id } });
      context.out(options.json ? `${harmlessJson(created)}\n` : `${created.run_id}\n`);
      if (!options.json) context.report(`created; page ${item.session_link ?? ''}; follow: ${look} --follow`);
      return;
    }
    if (!options.json) context.out(`${context.colours.bold('run')} ${created.run_id}\n`);
    const { withheld = [] } = options.json ? {} : await client.getRun({ params: { runId: created.run_id } });
    for (const { reason } of withheld) context.report(harmlessLine(reason, 1_000));
    // Does not report a missing slot if Runyard was just started, because then its worker may only need a moment to connect.
    if (created.at_capacity && !isFresh)
      context.report('no worker has a free slot at the moment: the run waits for one');
    process.exitCode = await watchOwn(context, client, created.run_id, { ...options, isFresh }, interruption);
    // Exits explicitly, because a cancel request that is still being retried would keep the process alive.
    if (process.exitCode === interruptedCode) process.exit();
  } finally {
    interruption.restore();
  }
}

/**
 * Watches a run that this command has created. `isFresh`: Runyard was started for this run. An interruption cancels the run, or with
 * `detachOnSignal` lets the run continue.
 * @returns the exit code
 */
async function watchOwn(
  context: Context,
  client: Client,
  runId: string,
  options: RunCommandOptions & { readonly isFresh: boolean },
  { first }: Interruption,
): Promise<number> {
  const leave = new AbortController();
  const onInterruption = () => {
    if (options.detachOnSignal) {
      context.report(`${first.reason}: the run ${runId} continues; follow: bin/runyard logs ${runId} --follow`);
      leave.abort();
      return;
    }
    context.report(`${first.reason}: cancelling the run ${runId} ... (Ctrl-C again: leave without waiting)`);
    cancelWithPatience(client, runId).catch((error: unknown) => {
      context.report(`could not cancel: ${harmlessLine(error instanceof Error ? error.message : String(error))}`);
    });
  };
  // The asker must be created before the handler of the interruption is added, so that an interruption removes the prompt before the
  // message is printed.
  const terminal = options.json ? undefined : ownTerminal();
  const asker = terminal && createAsker(context, client, runId, terminal, first);
  if (first.aborted) onInterruption();
  else first.addEventListener('abort', onInterruption, { once: true });
  const item = await watch(context, client, runId, nothingShown(context), {
    json: options.json === true,
    signal: leave.signal,
    asker,
    ...(options.isFresh ? { quietMs: workerStartMs } : {}),
  });
  if (item === null || (first.aborted && item.state === 'CANCELLED')) return interruptedCode;
  return exitCodeOf(item.state);
}

/**
 * Starts the service, the database and the worker in the background. Does nothing if a service already runs here or if the settings name
 * a remote service.
 */
async function ensureStarted(context: Context, interrupted: AbortSignal): Promise<boolean> {
  requireSameSettings(context);
  if (serviceOrigin(context) !== null) return false;
  await ensureSandboxTool(context.settings, context.env, context.report);
  context.report('starting service, database and worker in the background ...');
  const claim = await startInBackground(context.folder, context.env, {
    signal: interrupted,
    report: context.report,
  });
  // Checks the settings again, because another command with other settings may have started Runyard at the same time.
  requireSameSettings(context);
  context.report(
    `running at ${claim.origin} (process ${claim.pid}); it stays; dashboard: bin/runyard open; stop it with: bin/runyard down`,
  );
  return true;
}

/** Declares the command `run`. */
export function declareRun(command: Command): void {
  addRunOptions(command)
    .argument('[prompt]', 'a file, - for standard input, or the prompt itself in quotes; needed without --skill')
    .option('--title <title>', 'title of the run')
    .option('--name <name>', 'label to group and filter runs by')
    .option('--attach <file>', 'a file to put into attachments/ of the workspace; repeat for more', collect)
    .option('--detach', 'print the id and return at once')
    .option(
      '--detach-on-signal',
      'at Ctrl-C, SIGTERM, SIGHUP or a closed pipe: stop only this command instead of cancelling the run',
    )
    .option('--json', 'print each event as a line of JSON; the last line has the member run')
    .addHelpText('after', exitCodesHelp)
    .action((source, options) => run(processContext(), source, options));
}
