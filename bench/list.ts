/**
 * Measures the processor time to list 50 of up to a million runs of one team, by each filter and sort, on one or two PostgreSQL servers.
 * `--runs 10000,100000` measures other numbers of runs.
 */
import { parseArgs } from 'node:util';
import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { type Database, openDatabase } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { migrateDatabase } from '../packages/service/src/platform/store/migrations/migrate.ts';
import { listRuns } from '../packages/service/src/runs/runs/list/list.ts';
import { createEmptyDatabase } from '../packages/service/test/database.ts';
import { casesOf, type Make, singleFilters, sorts } from './list-cases.ts';
import { randomNumbers, type Seeded, seedRuns } from './list-seed.ts';
import { cpuMsOf } from './processes.ts';
import { percentile, report } from './report.ts';
import { openSeeded } from './seeded.ts';

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: process.env.BENCH_RUNS ?? '10000,100000,1000000' },
    repetitions: { type: 'string', default: process.env.BENCH_REPETITIONS ?? '100' },
    write: { type: 'boolean' },
  },
});
const sizes = options.runs.split(',').map(Number);
const repetitions = Number(options.repetitions);
/** The measurement of a cell ends after this time, even if repetitions are missing. So a slow row cannot keep the page from being written. */
const cellMs = 1_000 * Number(process.env.BENCH_CELL_SECONDS ?? 30);

/** The goals for the largest number of runs: largest allowed p99 in milliseconds. */
const goals = { single: 20, words: 60, together: 200 };

/** For each sort without a filter, this many pages are measured, beginning with the first page. */
const sortedPages = 20;

/** Ids of the PostgreSQL processes of the connections to the measured database. These processes must run on this machine. */
let backends: number[] = [];
/** Returns the milliseconds of processor time that this process and the PostgreSQL processes of its connections have used. */
const spent = () => cpuMsOf([process.pid, ...backends]);

const signer = { sign: () => 'signature', verify: () => true };

/**
 * Returns the milliseconds of processor time of each repetition. With `pages`, each repetition reads the next page of the list; after
 * `pages` pages, the next repetition reads the first page again. Begins no repetition after `deadline`, except the first one.
 */
async function measure(
  db: Database,
  seeded: Seeded,
  make: Make,
  sort: (typeof sorts)[number],
  times: number,
  deadline: number,
  pages = 0,
): Promise<number[]> {
  const random = randomNumbers(11);
  const context = { teamId: seeded.teamId, teamUid: 'BenchBenchBenchBench22', baseUrl: '' };
  const sample: number[] = [];
  let cursor: string | undefined;
  for (let n = 0; n < times && (n === 0 || performance.now() < deadline); n += 1) {
    const query = ListRunsQuery.parse({ ...make(n, random), limit: 50, sort_by: sort[0], sort_order: sort[1], cursor });
    const started = spent();
    const outcome = await listRuns(db, signer, context, query);
    sample.push(spent() - started);
    if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
    cursor = pages > 0 && (n + 1) % pages > 0 ? outcome.page.page_info.next_cursor : undefined;
  }
  return sample;
}

/** Milliseconds of processor time of each repetition, and the number of repetitions that were planned. */
interface Sample {
  readonly times: readonly number[];
  readonly planned: number;
}

/** Returns p50 and p99, and the number of repetitions if the time for the cell was too short for all of them. */
const figures = ({ times, planned }: Sample): string =>
  `${percentile(times, 0.5).toFixed(1)} / ${percentile(times, 0.99).toFixed(1)}${times.length < planned ? ` (${times.length} of ${planned})` : ''}`;

/** Returns the goal for a row: the goal for `q` alone, for a sort or another single filter, or for several filters. */
const goalOf = (title: string): number =>
  title.startsWith('q, ') && !title.includes(' and ')
    ? goals.words
    : title.startsWith('sort ') || singleFilters.includes(title)
      ? goals.single
      : goals.together;

const misses = ({ times }: Sample, goal: number): boolean => !(percentile(times, 0.99) < goal);

/** An open database that contains the runs. `remove` closes the database, and deletes it unless BENCH_KEEP keeps it. */
interface Filled {
  /** The kind and the version of the server. */
  readonly name: string;
  readonly db: Database;
  readonly seeded: Seeded;
  remove(): Promise<void>;
}

/** The sample of a filter or sort. `others`: the same filter with the six other sorts. */
interface Row {
  readonly own: Sample;
  readonly others?: Sample;
}

/** Measures all filters and sorts over `count` runs. Returns the samples by the title of the filter or sort. */
async function measureAll({ name, db, seeded }: Filled, count: number): Promise<Map<string, Row>> {
  const connections = await db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  backends = connections.map(({ pid }) => pid);
  const idle: number[] = [];
  for (let n = 0; n < repetitions; n += 1) {
    const started = spent();
    await db.query('SELECT 1');
    idle.push(spent() - started);
  }
  const rows = new Map<string, Row>([['SELECT 1, for comparison', { own: { times: idle, planned: repetitions } }]]);
  const none: Make = () => ({});
  for (const sort of sorts) {
    const deadline = performance.now() + cellMs;
    await measure(db, seeded, none, sort, sortedPages, deadline, sortedPages);
    const times = await measure(db, seeded, none, sort, repetitions, deadline, sortedPages);
    rows.set(`sort ${sort.join(' ')}`, { own: { times, planned: repetitions } });
  }
  for (const [title, make] of Object.entries(casesOf(seeded, count))) {
    if (title === 'none') continue;
    const deadline = performance.now() + cellMs;
    await measure(db, seeded, make, ['updated_at', 'desc'], 5, deadline);
    const times = [
      ...(await measure(db, seeded, make, ['updated_at', 'desc'], repetitions, deadline)),
      ...(await measure(db, seeded, make, ['updated_at', 'asc'], repetitions / 2, deadline)),
    ];
    const others: number[] = [];
    const ofOthers = sorts.slice(2);
    for (const [index, sort] of ofOthers.entries()) {
      const share = performance.now() + cellMs / (ofOthers.length - index);
      others.push(...(await measure(db, seeded, make, sort, 10, share)));
    }
    const row = {
      own: { times, planned: repetitions + Math.ceil(repetitions / 2) },
      others: { times: others, planned: 10 * ofOthers.length },
    };
    rows.set(title, row);
    process.stderr.write(`${name}, ${count} runs: ${title} | ${figures(row.own)} | ${figures(row.others)}\n`);
  }
  return rows;
}

async function describe(kind: string, db: Database): Promise<string> {
  const [server] = await db.query<{ version: string }>(
    `SELECT split_part(current_setting('server_version'), ' ', 1) AS version`,
  );
  return `${kind} ${server?.version}`;
}

async function fillEmbedded(count: number): Promise<Filled> {
  const opened = await openSeeded(count, 1);
  return { ...opened, name: await describe('embedded', opened.db) };
}

async function fillServer(server: string, count: number): Promise<Filled> {
  const { url, drop } = await createEmptyDatabase(server);
  const db = await openDatabase({ address: { connectionString: url }, maxConnections: 1, log: silentLog });
  await migrateDatabase(db);
  const seeded = await seedRuns(db, count);
  await db.onOwnConnection((client) => client.query('VACUUM ANALYZE'));
  return { name: await describe('server', db), db, seeded, remove: () => db.close().then(drop) };
}

const only = process.env.BENCH_ONLY;
const server = only === 'embedded' ? undefined : process.env.TEST_DATABASE_URL;
/** For each server, the samples of each number of runs. */
const samples = new Map<string, Map<string, Row>[]>();
for (const size of sizes) {
  // The databases are filled at the same time, and measured one after the other.
  const filling = [...(only === 'server' ? [] : [fillEmbedded(size)]), ...(server ? [fillServer(server, size)] : [])];
  for (const filled of await Promise.all(filling)) {
    try {
      samples.set(filled.name, [...(samples.get(filled.name) ?? []), await measureAll(filled, size)]);
    } finally {
      await filled.remove();
    }
  }
}

const named = (size: number) => `${size.toLocaleString('en')} runs`;
const rows = [...samples].flatMap(([name, ofSizes]) =>
  [...(ofSizes.at(-1) ?? [])].map(([title, { own, others }]) => {
    const cells = ofSizes.flatMap((bySize) => {
      const row = bySize.get(title);
      return [row ? figures(row.own) : '', row?.others ? figures(row.others) : ''];
    });
    const goal = goalOf(title);
    const isCompared = title.startsWith('SELECT');
    const verdicts = [
      isCompared ? '' : `${goal}${misses(own, goal) ? ': **missed**' : ''}`,
      others && misses(others, goals.together) ? ' other sorts: **missed**' : '',
    ];
    return [name, title, ...cells, verdicts.join('')];
  }),
);
const missed = rows.filter((row) => row.join().includes('missed')).length;
report(
  `Listing 50 of ${sizes.map((size) => size.toLocaleString('en')).join(', ')} runs`,
  `The table shows the milliseconds of processor time of \`listRuns\` with one caller (p50 / p99), for each number of runs in a database of its own. The time is that of the service's process and of its PostgreSQL connections together, including all queries and the reading of their results. For each filter, the runs are sorted by their latest change, ${repetitions} times descending and ${repetitions / 2} ascending, and the filter's value is frequent, rare, only in old runs, or in no run. For each sort without a filter, the first ${sortedPages} pages were read, ${repetitions} times each sort. The columns "other sorts" show the same filter with the six other sorts, 10 times each. A cell is measured for at most ${cellMs / 1000} s; if this was too short for all repetitions, the cell has their number. Goals for the p99 with ${named(sizes.at(-1) ?? 0)}: ${goals.single} ms for each filter and sort, ${goals.words} ms for \`q\`, ${goals.together} ms for several filters at once and for other sorts. **${missed === 0 ? 'All goals are met.' : `${missed} of ${rows.length} rows miss a goal.`}**`,
  ['database', 'filter or sort', ...sizes.flatMap((size) => [named(size), 'other sorts']), 'goal'],
  rows,
);
