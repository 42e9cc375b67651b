import { ApiError, type Client } from '@runyard/client';
import {
  type ComparedRun,
  comparisonRequest,
  maxComparedRuns,
  outlookOf,
  readComparedRun,
  type Variant,
  variantsOf,
  waitForRuns,
} from '@runyard/client/comparison';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import type { RunItem } from '@runyard/contract/runs/runs';
import { parseIsoDuration } from '@runyard/contract/wire/iso-duration';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { interruptedCode } from '../../exits/exit-codes.ts';
import { Failure } from '../../exits/failure.ts';
import { readPrompt } from '../../input/input-file.ts';
import { asJson, collect, runHelp, wholeNumber } from '../../input/options.ts';
import { connect, describeProblem } from '../../service/connect.ts';
import { resolveRunId, shortIds } from '../../service/run-id.ts';
import { requireSameSettings } from '../../service/same-settings.ts';
import { formatDuration, formatUsd } from '../../terminal/amounts.ts';
import type { Column } from '../../terminal/columns.ts';
import { isConfirmed } from '../../terminal/confirm.ts';
import { harmlessLine } from '../../terminal/harmless.ts';
import { printList } from '../../terminal/list.ts';
import { watchInterruptions } from './interruption.ts';

interface CompareOptions {
  readonly model?: readonly string[];
  readonly harness?: readonly string[];
  readonly skill?: readonly string[];
  readonly prompt?: readonly string[];
  readonly times?: number;
  readonly yes?: true;
  readonly json?: true;
}

/** A run of the table. A run that was not created has only the reason. */
type Row = ComparedRun | { readonly run_id: string; readonly refused: string };

/** Shows runs side by side. With models, prompts, skills or harnesses, first repeats the runs with each of them. */
export async function compare(context: Context, names: readonly string[], options: CompareOptions): Promise<void> {
  requireSameSettings(context);
  const client = connect(context);
  const ids = [...new Set(await Promise.all(names.map((name) => resolveRunId(client, name))))];
  if (ids.length > maxComparedRuns) throw new Failure(`a comparison shows at most ${maxComparedRuns} runs`, 2);
  const { model, harness, skill, prompt, times } = options;
  const startsRuns = [model, harness, skill, prompt, times].some((each) => each !== undefined);
  if (!startsRuns) return await show(context, client, ids, [], options);
  const originals = await Promise.all(ids.map((runId) => client.getRun({ params: { runId } })));
  const variants = variantsOf({ model, harness, skill, prompt: prompt?.map((text) => readPrompt(text)) });
  await confirm(context, originals, variants.length, options);
  const interruption = watchInterruptions();
  interruption.second.addEventListener('abort', () => process.exit(interruptedCode));
  const created: string[] = [];
  const refused: Row[] = [];
  try {
    for (const { run, variant } of trialsOf(originals, variants, times ?? 1)) {
      if (interruption.first.aborted) break;
      const outcome = await startTrial(client, run, variant);
      if ('run_id' in outcome) created.push(outcome.run_id);
      else {
        context.report(harmlessLine(`${run.run_id} was not repeated${nameOf(variant)}: ${outcome.refused}`, 1_000));
        refused.push({ run_id: run.run_id, ...outcome });
      }
    }
    if (created.length === 0) throw new Failure('no run was started');
    context.report(`started ${created.length} runs; waiting for their end. Ctrl-C leaves them running`);
    await waitForRuns(client, created, interruption.first);
  } catch (error) {
    if (created.length > 0) context.report(`the runs continue; ${seeAgain([...ids, ...created])}`);
    if (!interruption.first.aborted) throw error;
    process.exitCode = interruptedCode;
    return;
  } finally {
    interruption.restore();
  }
  await show(context, client, [...ids, ...created], refused, options);
}

/** Asks whether the runs may be started. @throws Failure if they may not, or if there is nobody to ask */
async function confirm(
  context: Context,
  originals: readonly RunItem[],
  variants: number,
  { times = 1, yes }: CompareOptions,
): Promise<void> {
  const count = originals.length * variants * times;
  if (count + originals.length > maxComparedRuns)
    throw new Failure(
      `these are ${count} new runs; a comparison has at most ${maxComparedRuns} runs with the originals. Lower --times, or compare fewer runs`,
      2,
    );
  const { costUsd, reach } = outlookOf(originals, variants * times);
  context.report(
    `new runs: ${count} (originals: ${originals.length}, variants: ${variants}, times: ${times}); about ${formatUsd(costUsd)} if each costs as much as its original`,
  );
  context.report('they begin at the commits of the originals, and can neither push nor open pull requests');
  if (reach.length > 0)
    context.report(`they can use, and change things with: ${harmlessLine(reach.join(', '), 1_000)}`);
  if (yes) return;
  if (!process.stdin.isTTY)
    throw new Failure('nothing was started: there is no terminal for the question; start the runs with --yes', 2);
  if (!(await isConfirmed('Start them? [y/N] '))) throw new Failure('nothing was started');
}

/** Returns the runs to start: each original in each variant, `times` times. */
function* trialsOf(originals: readonly RunItem[], variants: readonly Variant[], times: number) {
  for (const run of originals)
    for (const variant of variants) for (let time = 0; time < times; time += 1) yield { run, variant };
}

/** Starts one run. Returns the reason if the service refuses it, because this does not stop the others. */
async function startTrial(client: Client, run: RunItem, variant: Variant) {
  try {
    const body = comparisonRequest(run, variant);
    return { run_id: (await client.rerunRun({ params: { runId: run.run_id }, body })).run_id };
  } catch (error) {
    if (error instanceof ApiError) return { refused: describeProblem(error) };
    throw error;
  }
}

const nameOf = ({ prompt: _, ...words }: Variant): string => {
  const list = Object.values(words);
  return list.length === 0 ? '' : ` with ${list.join(', ')}`;
};

const seeAgain = (ids: readonly string[]): string => `see the table again with: bin/runyard compare ${ids.join(' ')}`;

async function show(
  context: Context,
  client: Client,
  ids: readonly string[],
  refused: readonly Row[],
  options: CompareOptions,
): Promise<void> {
  const rows: Row[] = [];
  for (const id of ids) rows.push(await readComparedRun(client, id));
  rows.push(...refused);
  const short = process.stdout.isTTY ? shortIds(ids) : undefined;
  printList(context, { columns: columnsOf(short), rows, json: { runs: rows }, none: 'no runs' }, options);
  if (refused.length > 0) process.exitCode = 1;
  if (ids.length > 1 && !options.json) context.report(seeAgain(ids));
}

/** A column about a run that exists; the cell of a refused one is empty. */
const about = (header: string, text: (row: ComparedRun) => string, more: Partial<Column<Row>> = {}): Column<Row> => ({
  header,
  text: (row) => ('refused' in row ? '' : text(row)),
  ...more,
});

const columnsOf = (short: ReadonlyMap<string, string> | undefined): Column<Row>[] => [
  {
    header: 'RUN',
    text: (row) => {
      const id = 'refused' in row ? row.run_id : row.run.run_id;
      return short?.get(id) ?? id;
    },
    raw: (row) => ('refused' in row ? row.run_id : row.run.run_id),
  },
  about('MODEL', ({ run }) => run.model_id ?? '', { flexible: true }),
  about('HARNESS', ({ run }) => run.agent_config?.harness?.type ?? ''),
  about('STATE', ({ run }) => run.state),
  about('CHECKS', ({ checks }) =>
    checks.length === 0 ? '' : `${checks.filter(({ passed }) => passed === true).length}/${checks.length}`,
  ),
  about('COST', ({ run }) => formatUsd(outlookOf([run], 1).costUsd), { align: 'right' }),
  about('TIME', ({ run }) => formatDuration(parseIsoDuration(run.run_time ?? '') ?? 0), { align: 'right' }),
  about('DIFF', ({ diff }) => (diff === null ? '' : `${diff.files} files +${diff.additions} -${diff.deletions}`)),
  {
    header: 'RESULT',
    text: (row) => {
      if ('refused' in row) return `not started: ${row.refused}`;
      const { run } = row;
      if ('result' in run) return JSON.stringify(run.result);
      return run.state === 'SUCCEEDED' ? (run.final_message ?? '') : (run.status_message?.message ?? '');
    },
    flexible: true,
  },
];

/** Declares the command `compare`. */
export function declareCompare(command: Command): void {
  command
    .argument('<run...>', `runs to show side by side: ${runHelp}`)
    .option('--model <id>', 'repeat the runs with this language model; repeat for more', collect)
    .option(
      '--harness <type>',
      `repeat the runs with this harness: oz, ${presetTypes.join(', ')}; repeat for more`,
      collect,
    )
    .option('--skill <spec>', 'repeat the runs with this skill: owner/repo:name; repeat for more', collect)
    .option(
      '--prompt <prompt>',
      'repeat the runs with this prompt: a file, or the text itself; repeat for more',
      collect,
    )
    .option('--times <count>', 'how often each run is repeated in each variant (default: 1)', wholeNumber)
    .option('--yes', 'start the runs without a question')
    .option(...asJson)
    .addHelpText(
      'after',
      `
Without a variant and --times, the command starts nothing. New runs begin at the commits of the originals, and can neither
push nor open pull requests.
Exit code: 0 the table was shown; 1 a run was not started; 2 wrong usage; 130 interrupted: the runs continue.`,
    )
    .action((runs, options) => compare(processContext(), runs, options));
}
