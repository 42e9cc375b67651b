import type { Client } from '@runyard/client';
import type { RerunRequest } from '@runyard/contract/runs/run-request';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { exitCodesHelp } from '../../exits/exit-codes.ts';
import { Failure } from '../../exits/failure.ts';
import { readPrompt } from '../../input/input-file.ts';
import { asJson, collect, runHelp } from '../../input/options.ts';
import { parsePair } from '../../input/parse-pair.ts';
import { connect } from '../../service/connect.ts';
import { resolveRunId } from '../../service/run-id.ts';
import { requireSameSettings } from '../../service/same-settings.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';
import { logs } from './logs.ts';
import { configFrom, type RunOptions } from './request.ts';
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
  {
    follow,
    json,
    failed,
    ...changes
  }: RerunChanges & { readonly follow?: true; readonly json?: true; readonly failed?: true },
): Promise<void> {
  requireSameSettings(context);
  const client = connect(context);
  const runId = await resolveRunId(client, run);
  if (failed) {
    if (follow || Object.keys(changes).length > 0)
      throw new Failure('--failed repeats the runs as they are, and takes no other option than --json', 2);
    return await rerunFailed(context, client, runId, json);
  }
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

/** Repeats the failed runs of a tree. Prints the ids of the new runs. */
async function rerunFailed(context: Context, client: Client, runId: string, json: true | undefined): Promise<void> {
  const answer = await client.rerunFailedRuns({ params: { runId } });
  context.out(json ? `${harmlessJson(answer)}\n` : answer.reruns.map(({ rerun_run_id: id }) => `${id}\n`).join(''));
  if (json) return;
  for (const { run_id: id, reason } of answer.refused)
    context.report(harmlessLine(`${id} was not repeated: ${reason}`, 1_000));
  if (answer.reruns.length + answer.refused.length === 0) context.report('no failed run of the tree waits for a rerun');
  if (answer.has_more) context.report('there are more failed runs; run the command again');
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
    .option(
      '--failed',
      'repeat the failed runs in the tree of the run instead of the run, each once, below their parents',
    )
    .option('--follow', 'wait until the new run ends or is BLOCKED, and exit with the code of its state')
    .option(...asJson)
    .addHelpText('after', exitCodesHelp)
    .action((run, options) => rerun(processContext(), run, options));
}
