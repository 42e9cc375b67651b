/**
 * Counts the pages of the database that a list of 50 runs reads, by each filter and sort, and measures its time. `--runs 100000` counts with
 * another number of runs.
 */
import { parseArgs } from 'node:util';
import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { listRuns } from '../packages/service/src/runs/runs/list/list.ts';
import { observeBuffers } from '../test/support/observed-plans.ts';
import { casesOf, type Make, sorts } from './list-cases.ts';
import { randomNumbers, type Seeded } from './list-seed.ts';
import { median, report } from './report.ts';
import { openSeeded } from './seeded.ts';

const { values: options } = parseArgs({
  options: { runs: { type: 'string', default: '300000' }, write: { type: 'boolean' } },
});
const runs = Number(options.runs);
/** Number of queries of each filter and sort. */
const repetitions = 4;

const signer = { sign: () => 'signature', verify: () => true };

/** Pages and milliseconds of each query. */
interface Sample {
  readonly pages: number[];
  readonly ms: number[];
}

/** Lists with a filter and a sort: counts pages, and lists again to measure times if `isTimed`. */
async function measure(
  db: Database,
  seeded: Seeded,
  make: Make,
  [sort_by, sort_order]: (typeof sorts)[number],
  isTimed: boolean,
): Promise<Sample> {
  const random = randomNumbers(11);
  const context = { teamId: seeded.teamId, teamUid: 'BenchBenchBenchBench22', baseUrl: '' };
  const sample: Sample = { pages: [], ms: [] };
  for (let n = 0; n < repetitions; n += 1) {
    const query = ListRunsQuery.parse({ ...make(n, random), view: 'summary', limit: 50, sort_by, sort_order });
    let pages = 0;
    const counting = observeBuffers(db, (read) => {
      pages += read;
    });
    const outcome = await listRuns(counting, signer, context, query);
    if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
    sample.pages.push(pages);
    if (!isTimed) continue;
    const began = performance.now();
    await listRuns(db, signer, context, query);
    sample.ms.push(performance.now() - began);
  }
  return sample;
}

const { db, seeded, remove } = await openSeeded(runs, 1);
const [table] = await db.query<{ pages: number }>(`SELECT relpages AS pages FROM pg_class WHERE relname = 'runs'`);
const tablePages = table?.pages ?? 0;
/** Pages of the executions, requests, artifacts and other rows that the summaries of 50 runs show. */
const shown = 1_500;
const goal = tablePages + 3_100 + shown;

/** The first sorts are those by the last change. */
const byChange = 2;
const rows: string[][] = [];
for (const [title, make] of Object.entries(casesOf(seeded, runs))) {
  const samples: Sample[] = [];
  for (const [n, sort] of sorts.entries()) samples.push(await measure(db, seeded, make, sort, n < byChange));
  const cell = (all: readonly number[]) => `${Math.round(median(all))} / ${Math.round(Math.max(...all))}`;
  const own = samples.slice(0, byChange);
  const [pages, ms] = [own.flatMap((sample) => sample.pages), own.flatMap((sample) => sample.ms)];
  const others = samples.slice(byChange).flatMap((sample) => sample.pages);
  const isMissed = samples.some(({ pages }) => Math.max(...pages) > goal);
  rows.push([title, cell(pages), cell(ms), cell(others), isMissed ? '**missed**' : '']);
  process.stderr.write(`${rows.at(-1)?.join(' | ')}\n`);
}
await remove();

report(
  `Listing 50 of ${runs.toLocaleString('en')} runs`,
  `Each cell has the pages of 8 KB that \`listRuns\` reads, from memory or disk, or its milliseconds (median / most), with summaries, one caller and an embedded PostgreSQL. The table of runs has ${tablePages.toLocaleString('en')} pages. Each filter has ${repetitions} queries for each sort: with frequent values, rare ones, some that only old runs have, and some of no run. "By change": sorted by the last change in both directions; "other sorts": by creation, title and skill. Goal: at most the pages of the table, 3,100 others to find the runs, and ${shown.toLocaleString('en')} to show them. The pages do not depend on the load of the machine; the times do.`,
  ['filter', 'pages by change', 'ms by change', 'pages by other sorts', 'goal'],
  rows,
);
