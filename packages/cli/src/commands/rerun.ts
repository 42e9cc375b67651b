import type { Client } from '@runyard/client';
import type { RerunRequest } from '@runyard/contract/runs/run-request';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { exitCodesHelp } from '../exit-codes.ts';
import { harmlessJson } from '../live/harmless.ts';
import { asJson, collect, runHelp } from '../options.ts';
import { resolveRunId } from '../run-id.ts';
import { requireSameSettings } from '../same-settings.ts';
import { logs } from './logs.ts';
import { parsePair } from './parse-pair.ts';
import { readPrompt } from './read-prompt.ts';
import { configFrom, type RunOptions } from './run-request.ts';
import { withIds } from './with-ids.ts';

/** Options that change parts of the run. All other parts of the run's configuration stay unchanged. */
interface RerunChanges extends Omit<RunOptions, 'attach'> {
  /** The prompt: the name of a file, `-` for standard input, or the text itself. */
  readonly prompt?: string;
}

/**
 * Returns the request that the options describe. If a request has a configuration, the service uses it in place of the whole configuration
 * of the earlier run. So this function applies the options to a copy of the earlier run's configuration.
 */
export async function rerunRequest(
  client: Pick<Client, 'getRun'>,
  runId: string,
  { prompt, title, metadata, ...options }: RerunChanges,
): Promise<RerunRequest> {
  const changes = configFrom(options);
  const isSame = Object.keys(changes).length === 0;
  const present = isSame ? {} : (await client.getRun({ params: { runId } })).agent_config;
  return {
    ...(prompt === undefined ? {} : { prompt: readPrompt(prompt) }),
    ...(title === undefined ? {} : { title }),
    ...(metadata === undefined ? {} : { metadata: Object.fromEntries(metadata.map(parsePair)) }),
    ...(isSame ? {} : { config: { ...present, ...changes } }),
  };
}

/** Starts a new run with the prompt, configuration, attachments and metadata of another run. The options replace single values. */
export async function rerun(
  context: Context,
  run: string,
  { follow, json, ...changes }: RerunChanges & { readonly follow?: true; readonly json?: true },
): Promise<void> {
  requireSameSettings(context);
  const client = connect(context);
  const runId = await resolveRunId(client, run);
  const body = await withIds(client, await rerunRequest(client, runId, changes));
  const created = await client.rerunRun({ params: { runId }, body });
  if (follow) {
    if (!json) context.out(`${context.colours.bold('run')} ${created.run_id}\n`);
    await logs(context, created.run_id, { follow, ...(json ? { json } : {}), exitStatus: true });
    return;
  }
  context.out(json ? `${harmlessJson(created)}\n` : `${created.run_id}\n`);
  if (!json) context.report(`created; follow: bin/runyard logs ${created.run_id} --follow`);
}

/** Declares the command `rerun`. */
export function declareRerun(command: Command): void {
  command
    .argument('<run>', runHelp)
    .option('--prompt <prompt>', 'another prompt: a file, - for standard input, or the text itself')
    .option('--title <title>', 'another title')
    .option('--model <id>', 'another language model')
    .option('--environment <id>', 'another environment, by UID or name')
    .option('--name <name>', 'another label')
    .option('--max-cost <usd>', 'another limit for the cost of the run')
    .option('--metadata <key=value>', "pairs that replace the run's pairs; repeat for more", collect)
    .option('--follow', 'wait until the new run ends or is BLOCKED, and exit with the code of its state')
    .option(...asJson)
    .addHelpText('after', exitCodesHelp)
    .action((run, options) => rerun(processContext(), run, options));
}
