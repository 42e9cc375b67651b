/** Time to list 50 of a million runs of one team: every filter alone, every sort alone, on the embedded PostgreSQL and on `TEST_DATABASE_URL`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ListRunsQuery } from '../packages/contract/src/run-list.ts';
import { listRuns } from '../packages/service/src/runs/list.ts';
import { type Database, openDatabase } from '../packages/service/src/store/database.ts';
import { startEmbeddedPostgres } from '../packages/service/src/store/embedded/start.ts';
import { silentLog } from '../packages/service/src/store/log.ts';
import { migrateDatabase } from '../packages/service/src/store/migrate.ts';
import { createEmptyDatabase } from '../packages/service/src/store/test-database.ts';
import { randomNumbers, type Seeded, seedRuns, skewed } from './list-seed.ts';
import { percentile, report } from './report.ts';

const count = Number(process.env.BENCH_RUNS ?? 1_000_000);
const repetitions = Number(process.env.BENCH_REPETITIONS ?? 200);

type Query = Record<string, unknown>;
type Make = (n: number, random: () => number) => Query;

const signer = { sign: () => 'signature', verify: () => true };
const oneOf = <T>(values: readonly T[], n: number): T => values[n % values.length] as T;
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

/** Frequent values, rare ones, those of old runs only, and some that no run has. */
function casesOf(seeded: Seeded): Record<string, Make> {
  const some =
    (name: string, prefix: string, size: number, ...others: string[]): Make =>
    (n, random) => ({
      [name]: n % 4 === 0 ? oneOf([...others, 'nothing'], n / 4) : `${prefix}${skewed(random, size)}`,
    });
  const spread: Make = (_, random) => ({ at: daysAgo(180 * random()) });
  const time =
    (name: string): Make =>
    (n, random) => ({ [name]: spread(n, random).at });
  const word = (random: () => number, from: number, to: number) =>
    seeded.vocabulary[Math.floor(from + random() * (to - from))] ?? '';
  return {
    none: () => ({}),
    'state, one': (n) => ({ state: [oneOf(['SUCCEEDED', 'FAILED', 'BLOCKED', 'INPROGRESS', 'CANCELLED'], n)] }),
    'state, several': (n) => ({
      state: oneOf(
        [
          ['FAILED', 'ERROR'],
          ['QUEUED', 'INPROGRESS', 'BLOCKED'],
          ['SUCCEEDED', 'CANCELLED'],
        ],
        n,
      ),
    }),
    name: some('name', 'agent-', 80),
    model_id: some('model_id', 'model-', 12, 'retired-model'),
    creator: some('creator', 'user-', 200),
    executor: some('executor', 'user-', 200, 'account-3'),
    source: (n) => ({ source: oneOf(['API', 'CLI', 'JIRA', 'LINEAR', 'SCHEDULED_AGENT'], n) }),
    execution_location: (n) => ({ execution_location: oneOf(['LOCAL', 'REMOTE'], n) }),
    created_after: time('created_after'),
    created_before: time('created_before'),
    updated_after: time('updated_after'),
    environment_id: some('environment_id', 'env-', 40, 'env-retired', 'empty-environment'),
    skill_spec: (n, random) => ({
      [oneOf(['skill', 'skill_spec'], n)]: `owner/repo:skills/skill-${skewed(random, 310)}/SKILL.md`,
    }),
    schedule_id: (_, random) => ({
      schedule_id: `01900000-0000-7000-8000-1${String(skewed(random, 62)).padStart(11, '0')}`,
    }),
    ancestor_run_id: (n) => ({ ancestor_run_id: oneOf(seeded.ancestors, n) }),
    'metadata, one pair': (n, random) => ({
      metadata: oneOf<Record<string, string>>(
        [
          { repository: `owner/repository-${skewed(random, 60)}` },
          { stage: 'prod' },
          { ticket: `T-${Math.floor(random() * count)}` },
          { campaign: 'last-summer' },
        ],
        n,
      ),
    }),
    'metadata, two pairs': (_, random) => ({
      metadata: {
        stage: oneOf(['prod', 'dev'], Math.floor(random() * 2)),
        repository: `owner/repository-${skewed(random, 60)}`,
      },
    }),
    automation_id: () => ({ automation_id: 'nothing' }),
    artifact_type: (n) => ({
      artifact_type: oneOf(['PLAN', 'PULL_REQUEST', 'SCREENSHOT', 'FILE', 'EXTERNAL_REFERENCE'], n),
    }),
    'q, frequent word': (_, random) => ({ q: word(random, 0, 300) }),
    'q, word': (_, random) => ({ q: word(random, 300, 20_000) }),
    'q, beginning of a word': (_, random) => ({ q: word(random, 0, 20_000).slice(0, 5) }),
    'q, two words': (_, random) => ({ q: `${word(random, 0, 3000)} ${word(random, 0, 20_000)}` }),
    'q, ticket': (_, random) => ({ q: `ticket-${Math.floor((random() * count) / 2) * 2}` }),
    'q, misspelt': (_, random) => ({ q: word(random, 0, 20_000).replace(/^(...)(.)(.)/, '$1$3$2') }),
  };
}

const sorts: [ListRunsQuery['sort_by'], ListRunsQuery['sort_order']][] = (
  ['updated_at', 'created_at', 'title', 'agent'] as const
).flatMap((by) =>
  [[by, 'desc'] as const, [by, 'asc'] as const].map(([key, order]): [typeof by, 'desc' | 'asc'] => [key, order]),
);

/** Milliseconds of each repetition. With `follow`, each takes the page after the last one. */
async function measure(
  db: Database,
  seeded: Seeded,
  make: Make,
  sort: (typeof sorts)[number],
  times: number,
  follow = false,
) {
  const random = randomNumbers(11);
  const context = { teamId: seeded.teamId, teamUid: 'BenchBenchBenchBench22', baseUrl: '' };
  const sample: number[] = [];
  let cursor: string | undefined;
  for (let n = 0; n < times; n += 1) {
    const query = ListRunsQuery.parse({ ...make(n, random), limit: 50, sort_by: sort[0], sort_order: sort[1], cursor });
    const started = performance.now();
    const outcome = await listRuns(db, signer, context, query);
    sample.push(performance.now() - started);
    if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
    if (follow) cursor = outcome.page.page_info.next_cursor;
  }
  return sample;
}

const figures = (sample: number[]) => [percentile(sample, 0.5).toFixed(1), percentile(sample, 0.99).toFixed(1)];

async function measureAll(name: string, db: Database): Promise<string[][]> {
  const log = (text: string) => process.stderr.write(`${name}: ${text}\n`);
  await migrateDatabase(db, { upTo: 1 });
  log('filling');
  const seeded = await seedRuns(db, count);
  log('building indexes');
  await migrateDatabase(db);
  await db.onOwnConnection((client) => client.query('VACUUM ANALYZE'));
  const [server] = await db.query<{ version: string }>(
    `SELECT split_part(current_setting('server_version'), ' ', 1) AS version`,
  );
  const rows: string[][] = [];
  const cases = casesOf(seeded);
  for (const [by, order] of sorts) {
    const sample = await measure(db, seeded, () => ({}), [by, order], repetitions, true);
    rows.push([`sort ${by} ${order}`, ...figures(sample), '']);
  }
  for (const [title, make] of Object.entries(cases)) {
    if (title === 'none') continue;
    await measure(db, seeded, make, ['updated_at', 'desc'], 5);
    const sample = [
      ...(await measure(db, seeded, make, ['updated_at', 'desc'], repetitions)),
      ...(await measure(db, seeded, make, ['updated_at', 'asc'], repetitions / 2)),
    ];
    const others: number[] = [];
    for (const sort of sorts.slice(2)) others.push(...(await measure(db, seeded, make, sort, 20)));
    rows.push([title, ...figures(sample), figures(others).join(' / ')]);
    log(rows.at(-1)?.join(' | ') ?? '');
  }
  return rows.map((row) => [`${name} ${server?.version}`, ...row]);
}

async function onEmbedded(): Promise<string[][]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-list-'));
  const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
  try {
    return await onDatabase('embedded', server.url);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function onServer(url: string): Promise<string[][]> {
  const database = await createEmptyDatabase(url);
  try {
    return await onDatabase('server', database.url);
  } finally {
    await database.drop();
  }
}

async function onDatabase(name: string, url: string): Promise<string[][]> {
  const db = await openDatabase({ address: { connectionString: url }, maxConnections: 4, log: silentLog });
  try {
    return await measureAll(name, db);
  } finally {
    await db.close();
  }
}

const only = process.env.BENCH_ONLY;
const rows = [
  ...(only === 'server' ? [] : await onEmbedded()),
  ...(process.env.TEST_DATABASE_URL && only !== 'embedded' ? await onServer(process.env.TEST_DATABASE_URL) : []),
];
report(
  `Listing 50 of ${count.toLocaleString('en')} runs`,
  `Milliseconds of \`listRuns\`, all its queries and the reading of the answer included, one caller. Filters by latest change, ${repetitions} times descending and ${repetitions / 2} ascending, with frequent, rare, old and missing values; sorts page on from the start, ${repetitions} pages. Goals, p99: 20 ms for each filter and sort, 60 ms for \`q\`. Last column, without a goal: the same filter under the six other sorts. The embedded PostgreSQL has 32 MB of shared buffers.`,
  ['database', 'filter or sort', 'p50 ms', 'p99 ms', 'other sorts p50 / p99 ms'],
  rows,
);
