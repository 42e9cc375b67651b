import { ApiError, type Client } from '@runyard/client';
import { isSettled, type RunState, runStates } from '@runyard/contract/runs/run-states';
import type { ListRunsResponse, RunItem } from '@runyard/contract/runs/runs';
import { parseIsoDuration } from '@runyard/contract/wire/iso-duration';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { addListWord, asJson, collect, runHelp } from '../../input/options.ts';
import { connect, describeProblem } from '../../service/connect.ts';
import { contextAndRunId, resolveRunId, shortIds } from '../../service/run-id.ts';
import { formatDuration } from '../../terminal/amounts.ts';
import type { Column } from '../../terminal/columns.ts';
import { harmlessJson, harmlessLines } from '../../terminal/harmless.ts';
import { printList } from '../../terminal/list.ts';
import { formatAgo } from '../../terminal/times.ts';
import { cancelWithPatience } from './cancel-with-patience.ts';
import { type RunFilters, runsQuery } from './query.ts';
import { questionLine } from './view/question.ts';

/** Lists runs, newest first. */
export async function listRuns(
  context: Context,
  options: RunFilters & { readonly limit: number; readonly json?: true },
): Promise<void> {
  const client = connect(context);
  const page = await firstRuns(client, await runsQuery(client, options), options.limit);
  const isNarrow = process.stdout.isTTY && process.stdout.columns < widthForIds;
  const columns = runColumns(Date.now(), isNarrow ? shortIds(page.runs.map(({ run_id }) => run_id)) : undefined);
  printList(context, { columns, rows: page.runs, json: page, none: 'no runs' }, options);
  if (options.json) return;
  for (const item of page.runs.filter(({ blocked_on }) => blocked_on)) {
    const question = item.blocked_on && harmlessLines(questionLine(item, item.blocked_on), 150);
    context.report(`${item.run_id}: ${question}`);
  }
  if (page.runs.some((item) => item.blocked_on))
    context.report("answer a run: bin/runyard approve RUN, deny RUN, or send RUN 'ANSWER'");
  if (page.page_info.has_next_page) context.report('there are more runs; --limit shows up to 500');
}

/** Returns a duration in seconds, such as 0.034, for programs that read the output. */
function secondsOf(runTime: string | undefined): string {
  const milliseconds = runTime === undefined ? undefined : parseIsoDuration(runTime);
  return milliseconds === undefined ? '' : `${milliseconds / 1000}`;
}

function tookOf(runTime: string | undefined): string {
  const milliseconds = runTime === undefined ? undefined : parseIsoDuration(runTime);
  return milliseconds === undefined ? '' : formatDuration(milliseconds);
}

/** In a terminal with fewer columns than this, ids are shortened, because titles would not have enough space beside complete ids. */
const widthForIds = 110;

function runColumns(now: number, shown?: ReadonlyMap<string, string>): Column<RunItem>[] {
  return [
    { header: 'RUN', text: ({ run_id }) => shown?.get(run_id) ?? run_id, raw: ({ run_id }) => run_id },
    {
      header: 'STATE',
      text: ({ state }) => state,
      paint: ({ state }, colours) =>
        state === 'SUCCEEDED'
          ? colours.green
          : isSettled(state) && state !== 'CANCELLED' && state !== 'BLOCKED'
            ? colours.red
            : colours.yellow,
    },
    { header: 'CREATED', text: ({ created_at }) => formatAgo(created_at, now), raw: ({ created_at }) => created_at },
    {
      header: 'TOOK',
      align: 'right',
      text: ({ run_time }) => tookOf(run_time),
      raw: ({ run_time }) => secondsOf(run_time),
    },
    { header: 'TITLE', flexible: true, text: ({ title }) => title },
  ];
}

/** Shows one run as JSON. */
export async function getRun(context: Context, runId: string): Promise<void> {
  const item = await connect(context).getRun({ params: { runId } });
  context.out(`${harmlessJson(item, 2)}\n`);
}

/**
 * Cancels runs one after the other, and prints the outcome for each run.
 * @throws Failure if a run was not cancelled
 */
export async function cancel(context: Context, names: readonly string[]): Promise<void> {
  const client = connect(context);
  const refused: string[] = [];
  for (const name of names) {
    try {
      const runId = await resolveRunId(client, name);
      await cancelWithPatience(client, runId);
      const { state } = await client.getRun({ params: { runId } });
      context.out(
        state === 'CANCELLED'
          ? `${runId} is cancelled\n`
          : `${runId} stays ${state}: its turn had already ended, and the sandbox in which its agent waited ends now\n`,
      );
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof Failure) || names.length === 1) throw error;
      refused.push(`${name}: ${error instanceof ApiError ? describeProblem(error) : error.message}`);
    }
  }
  if (refused.length > 0) throw new Failure(refused.join('\n'));
}

type Listing = Pick<Client, 'listRuns'>;
type Query = NonNullable<Parameters<Client['listRuns']>[0]>['query'];

/** Returns the first `limit` runs as one page. The service may return shorter pages if the prompts are long. */
export async function firstRuns(client: Listing, query: Query, limit: number): Promise<ListRunsResponse> {
  const runs: ListRunsResponse['runs'] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await client.listRuns({
      query: { ...query, limit: limit - runs.length, ...(cursor ? { cursor } : {}) },
    });
    runs.push(...page.runs);
    cursor = page.page_info.next_cursor;
    if (cursor === undefined || runs.length >= limit) return { runs, page_info: page.page_info };
  }
}

/**
 * Prints the result of a run as JSON.
 * @throws Failure with the reason if the run has no result
 */
export async function showResult(context: Context, runId: string): Promise<void> {
  const run = await connect(context).getRun({ params: { runId } });
  if ('result' in run) return context.out(`${harmlessJson(run.result, 2)}\n`);
  if (run.result_artifact_uid !== undefined)
    throw new Failure(
      `the result is larger than the API returns: bin/runyard artifacts get ${run.result_artifact_uid} --out result.json`,
    );
  if (!isSettled(run.state))
    throw new Failure(`the run is ${run.state} and has no result yet: bin/runyard logs ${runId} --follow`);
  throw new Failure(
    run.agent_config?.output_schema === undefined
      ? 'the run has no output_schema, so it returns no result: start it with --schema FILE'
      : `the run is ${run.state} and has no result`,
  );
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > 500)
    throw new InvalidArgumentError('It must be a whole number from 1 to 500.');
  return limit;
}

function parseState(text: string, before: RunState[] = []): RunState[] {
  const state = runStates.find((each) => each === text.toUpperCase());
  if (state === undefined) throw new InvalidArgumentError(`It must be one of ${runStates.join(', ')}.`);
  return [...before, state];
}

/** Declares the command `cancel`. */
export function declareCancel(command: Command): void {
  command
    .argument('<runs...>', `${runHelp}; several are cancelled one after the other`)
    .action((names) => cancel(processContext(), names));
}

/** Declares the command `runs`. */
export function declareRuns(runs: Command): void {
  runs
    .option('--limit <count>', 'how many', parseLimit, 20)
    .option('--state <state>', 'only runs in this state; repeat the option for more states', parseState)
    .option('--name <name>', 'only runs of this name')
    .option(...asJson)
    .action((options) => listRuns(processContext(), options));
  addRunFilters(runs);
  addListWord(runs, (options) => listRuns(processContext(), options));
  runs
    .command('get')
    .description('show one run as JSON')
    .argument('<run>', runHelp)
    .action(async (run) => {
      await getRun(...(await contextAndRunId(run)));
    });
  runs
    .command('result')
    .description('show the result of a run as JSON')
    .argument('<run>', runHelp)
    .action(async (run) => {
      await showResult(...(await contextAndRunId(run)));
    });
}

/** Adds an option for each filter of the list of runs. The service checks the values. */
function addRunFilters(runs: Command): void {
  runs
    .option('--model <id>', 'only runs with this model in their configuration')
    .option(
      '--environment <environment>',
      'only runs in this environment, by UID or name; none: runs without an environment',
    )
    .option('--skill <spec>', 'only runs that follow this skill')
    .option('--schedule <schedule>', 'only runs of this schedule, by id or name')
    .option('--factory <factory>', 'only runs of this factory, by UID, alias or name')
    .option('--automation <uid>', 'only runs that this automation started')
    .option('--below <run>', 'only runs below this run, at any depth')
    .option('--creator <uid>', 'only runs that this person or agent created')
    .option('--executor <uid>', 'only runs that execute as this person or agent')
    .option('--source <source>', 'only runs from this source, such as API or WEBHOOK')
    .option('--location <location>', 'only runs that execute there: LOCAL or REMOTE')
    .option('--artifact <type>', 'only runs with an artifact of this type, such as FILE or PULL_REQUEST')
    .option('--metadata <key=value>', 'only runs with this pair; repeat the option for more pairs', collect)
    .option('--created-after <time>', 'only runs that were created after this time, such as 2026-01-31T08:00:00Z')
    .option('--created-before <time>', 'only runs that were created before this time')
    .option('--updated-after <time>', 'only runs that changed after this time')
    .option('--search <words>', 'only runs with these words in title, skill or prompt')
    .addOption(new Option('--sort <member>', 'sort by').choices(['created_at', 'updated_at', 'title', 'agent']))
    .addOption(new Option('--order <order>', 'direction').choices(['asc', 'desc']));
}
