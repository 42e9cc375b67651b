/** Measures the processor time to list 50 of a million runs of one team, by each filter and sort, on one or two PostgreSQL servers. */
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
    runs: { type: 'string', default: process.env.BENCH_RUNS ?? '1000000' },
    repetitions: { type: 'string', default: process.env.BENCH_REPETITIONS ?? '100' },
    write: { type: 'boolean' },
  },
});
const count = Number(options.runs);
const repetitions = Number(options.repetitions);

/** The goals: largest allowed p99 in milliseconds. */
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
 * `pages` pages, the next repetition reads the first page again.
 */
async function measure(
  db: Database,
  seeded: Seeded,
  make: Make,
  sort: (typeof sorts)[number],
  times: number,
  pages = 0,
) {
  const random = randomNumbers(11);
  const context = { teamId: seeded.teamId, teamUid: 'BenchBenchBenchBench22', baseUrl: '' };
  const sample: number[] = [];
  let cursor: string | undefined;
  for (let n = 0; n < times; n += 1) {
    const query = ListRunsQuery.parse({ ...make(n, random), limit: 50, sort_by: sort[0], sort_order: sort[1], cursor });
    const started = spent();
    const outcome = await listRuns(db, signer, context, query);
    sample.push(spent() - started);
    if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
    cursor = pages > 0 && (n + 1) % pages > 0 ? outcome.page.page_info.next_cursor : undefined;
  }
  return sample;
}

const figures = (sample: number[]) => [percentile(sample, 0.5).toFixed(1), percentile(sample, 0.99).toFixed(1)];

/** Returns the goal for a row: the goal for `q` alone, for another single filter, or for several filters. */
const goalOf = (title: string): number =>
  title.startsWith('q, ') && !title.includes(' and ')
    ? goals.words
    : singleFilters.includes(title)
      ? goals.single
      : goals.together;

const judge = (sample: number[], goal: number): string =>
  percentile(sample, 0.99) < goal ? `${goal}` : `${goal}: **missed**`;

/** An open database that contains the runs. `remove` closes the database, and deletes it unless BENCH_KEEP keeps it. */
interface Filled {
  readonly name: string;
  readonly db: Database;
  readonly seeded: Seeded;
  remove(): Promise<void>;
}

const log = (name: string, text: string) => process.stderr.write(`${name}: ${text}\n`);

async function measureAll({ name, db, seeded }: Filled): Promise<string[][]> {
  const [server] = await db.query<{ version: string }>(
    `SELECT split_part(current_setting('server_version'), ' ', 1) AS version`,
  );
  const connections = await db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  backends = connections.map(({ pid }) => pid);
  const idle: number[] = [];
  for (let n = 0; n < repetitions; n += 1) {
    const started = spent();
    await db.query('SELECT 1');
    idle.push(spent() - started);
  }
  const rows: string[][] = [['SELECT 1, for comparison', ...figures(idle), '', '']];
  const cases = casesOf(seeded, count);
  for (const [by, order] of sorts) {
    await measure(db, seeded, () => ({}), [by, order], sortedPages, sortedPages);
    const sample = await measure(db, seeded, () => ({}), [by, order], repetitions, sortedPages);
    rows.push([`sort ${by} ${order}`, ...figures(sample), judge(sample, goals.single), '']);
  }
  for (const [title, make] of Object.entries(cases)) {
    if (title === 'none') continue;
    await measure(db, seeded, make, ['updated_at', 'desc'], 5);
    const sample = [
      ...(await measure(db, seeded, make, ['updated_at', 'desc'], repetitions)),
      ...(await measure(db, seeded, make, ['updated_at', 'asc'], repetitions / 2)),
    ];
    const others: number[] = [];
    for (const sort of sorts.slice(2)) others.push(...(await measure(db, seeded, make, sort, 10)));
    const other = percentile(others, 0.99) < goals.together ? '' : ': **missed**';
    rows.push([title, ...figures(sample), judge(sample, goalOf(title)), `${figures(others).join(' / ')}${other}`]);
    log(name, rows.at(-1)?.join(' | ') ?? '');
  }
  return rows.map((row) => [`${name} ${server?.version}`, ...row]);
}

const fillEmbedded = async (): Promise<Filled> => ({ name: 'embedded', ...(await openSeeded(count, 1)) });

async function fillServer(server: string): Promise<Filled> {
  const { url, drop } = await createEmptyDatabase(server);
  const db = await openDatabase({ address: { connectionString: url }, maxConnections: 1, log: silentLog });
  await migrateDatabase(db);
  const seeded = await seedRuns(db, count);
  await db.onOwnConnection((client) => client.query('VACUUM ANALYZE'));
  return { name: 'server', db, seeded, remove: () => db.close().then(drop) };
}

const only = process.env.BENCH_ONLY;
const server = only === 'embedded' ? undefined : process.env.TEST_DATABASE_URL;
// The databases are filled at the same time, and measured one after the other.
const filling = [...(only === 'server' ? [] : [fillEmbedded()]), ...(server ? [fillServer(server)] : [])];
const rows: string[][] = [];
for (const filled of await Promise.all(filling)) {
  try {
    rows.push(...(await measureAll(filled)));
  } finally {
    await filled.remove();
  }
}
const missed = rows.filter((row) => row.join().includes('missed')).length;
report(
  `Listing 50 of ${count.toLocaleString('en')} runs`,
  `The table shows the milliseconds of processor time of \`listRuns\` with one caller. The time is that of the service's process and of its PostgreSQL connections together, including all queries and the reading of their results. For each filter, the runs are sorted by their latest change, ${repetitions} times descending and ${repetitions / 2} ascending, and the filter's value is frequent, rare, only in old runs, or in no run. For each sort without a filter, the first ${sortedPages} pages were read, ${repetitions} times each sort. Goals, p99: ${goals.single} ms for each filter and sort, ${goals.words} ms for \`q\`, ${goals.together} ms for several filters at once. **${missed === 0 ? 'All goals are met.' : `${missed} of ${rows.length} rows miss their goal.`}** The last column shows the same filter with the six other sorts, 10 times each; the goal for this p99 is ${goals.together} ms.`,
  ['database', 'filter or sort', 'p50 ms', 'p99 ms', 'goal', 'other sorts p50 / p99 ms'],
  rows,
);
