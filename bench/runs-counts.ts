/**
 * Measures the reads that the dashboard makes most often, over up to a million runs of one team: pages of summaries, the counts of the
 * dashboard's views, the search of its command palette, and the reads of its other screens.
 */
import { RunCountsQuery } from '@runyard/contract/runs/run-counts';
import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { findThings } from '../packages/service/src/edges/search/domain.ts';
import { readQuery } from '../packages/service/src/edges/search/query.ts';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { countRuns } from '../packages/service/src/runs/runs/list/count.ts';
import { listRuns } from '../packages/service/src/runs/runs/list/list.ts';
import { runSearch } from '../packages/service/src/runs/runs/search.ts';
import { accessSearches } from '../packages/service/src/team/access/domain.ts';
import { environmentSearch } from '../packages/service/src/team/environments/domain.ts';
import { automationSearch } from '../packages/service/src/triggers/automations/domain.ts';
import { factorySearch } from '../packages/service/src/triggers/factories/domain.ts';
import { scheduleSearch } from '../packages/service/src/triggers/schedules/domain.ts';
import { webhookSearch } from '../packages/service/src/triggers/webhooks/domain.ts';
import { randomNumbers, type Seeded, skewed } from './list-seed.ts';
import { percentile, report } from './report.ts';
import { screenReads, seedScreens } from './screen-reads.ts';
import { openSeeded, type SeededDatabase } from './seeded.ts';
import { inTurns, timed } from './turns.ts';

const sizes = (process.env.BENCH_RUNS ?? '10000,100000,1000000').split(',').map(Number);
const repetitions = Number(process.env.BENCH_REPETITIONS ?? '100');
/** Goal for the views that the dashboard shows by default: the largest allowed p99 in milliseconds. */
const goal = 50;

const searches = [
  runSearch,
  scheduleSearch,
  automationSearch,
  webhookSearch,
  factorySearch,
  environmentSearch,
  ...accessSearches,
];

/** SQL that inserts as many factories, automations, webhooks and environments as a team may have, and the costs of all runs. */
const seedOthers = `
  SET session_replication_role = replica;
  INSERT INTO run_spend (run_id, spent_usd) SELECT id, 0.1 FROM runs;
  INSERT INTO factories (uid, team_id, name) SELECT 'factory-' || n, $1, 'Plant ' || n FROM generate_series(1, 50) n;
  INSERT INTO automations (uid, factory_uid, team_id, name, prompt, enabled, triggers, overlap, creator_kind, creator_uid, editor_kind, editor_uid)
    SELECT 'automation-' || n, 'factory-' || 1 + n % 50, $1, 'Look into alert ' || n, '', true, '[]', 'allow', 'user', 'u', 'user', 'u'
    FROM generate_series(1, 5000) n;
  INSERT INTO webhooks (uid, factory_uid, team_id, name, auth_mode, secret_name, enabled)
    SELECT 'webhook-' || n, 'factory-' || 1 + n % 50, $1, 'Alerts ' || n, 'token', '', false FROM generate_series(1, 1000) n;
  INSERT INTO environments (uid, team_id, config) SELECT rpad('env' || n, 22, 'x'), $1, jsonb_build_object('name', 'Node ' || n) FROM generate_series(1, 1000) n`;

const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

/** Opens a database with this number of runs, and with factories, automations, webhooks and environments. */
async function open(count: number): Promise<SeededDatabase> {
  const opened = await openSeeded(count);
  const { db, seeded } = opened;
  const [row] = await db.query<{ is_filled: boolean }>('SELECT EXISTS (SELECT FROM run_spend) AS is_filled');
  if (!row?.is_filled) {
    await db.onOwnConnection(async (client) => {
      for (const statement of seedOthers.split(';'))
        await client.query(statement.replaceAll('$1', `'${seeded.teamId}'`));
      await client.query('VACUUM ANALYZE');
    });
  }
  await seedScreens(db, seeded);
  return opened;
}

/** The reads to measure. Each has a name and a function; a read with a goal also has the largest allowed p99. */
async function casesOf(db: Database, seeded: Seeded): Promise<[string, number | null, () => Promise<unknown>][]> {
  const { teamId, vocabulary } = seeded;
  const reads = await screenReads(db, seeded);
  const random = randomNumbers(11);
  const context = { teamId, teamUid: 'BenchBenchBenchBench22', baseUrl: '' };
  const signer = { sign: () => 'signature', verify: () => true };
  const list = (query: object) => listRuns(db, signer, context, ListRunsQuery.parse({ limit: 50, ...query }));
  const counts = (query: object) => countRuns(db, teamId, RunCountsQuery.parse(query), new Date());
  const person = () => `user-${skewed(random, 200)}`;
  const word = (from: number, to: number) => vocabulary[Math.floor(from + random() * (to - from))] ?? '';
  const search = (q: string) =>
    findThings(db, searches, { ...readQuery(q), teamId, personUid: 'user-1', isAdministrator: true, limit: 5 });
  const day = () => ({ created_after: ago(1), step: '15m' });
  return [
    ['SELECT 1, for comparison', null, () => db.query('SELECT 1')],
    ['page, 50 whole items', null, () => list({})],
    ['page, 50 summaries', goal, () => list({ view: 'summary' })],
    ['page, 50 summaries, Needs answer', goal, () => list({ view: 'summary', state: ['BLOCKED'] })],
    ['page, 50 summaries, Live', goal, () => list({ view: 'summary', task_status: ['running'] })],
    ['page, 50 summaries, Started by me', goal, () => list({ view: 'summary', creator: [person()] })],
    ['count, All: 24 hours by 15 minutes', goal, () => counts(day())],
    ['count, Needs answer, ever', goal, () => counts({ state: ['BLOCKED'] })],
    ['count, Live, ever', goal, () => counts({ task_status: ['running'] })],
    ['count, Failed today', goal, () => counts({ state: ['FAILED', 'ERROR'], updated_after: ago(1) })],
    ['count, Started by me: 24 hours by 15 minutes', goal, () => counts({ ...day(), creator: [person()] })],
    ['count, a factory: 24 hours by 15 minutes', goal, () => counts({ ...day(), factory_uid: ['factory-1'] })],
    [
      'count, a model and a state: 24 hours',
      null,
      () => counts({ ...day(), model_id: 'model-0', state: ['SUCCEEDED'] }),
    ],
    ['count, words: 24 hours', null, () => counts({ ...day(), q: word(0, 300) })],
    ['count, all runs, ever (1,000 counted)', null, () => counts({})],
    ['count, a person and an environment, ever', null, () => counts({ creator: [person()], environment_id: 'env-0' })],
    ['count, 3 days by hour', null, () => counts({ created_after: ago(3), step: '1h' })],
    ['count, 30 days by day (20,000 counted)', null, () => counts({ created_after: ago(30), step: '1d' })],
    ['search, a word', goal, () => search(word(300, 20_000))],
    ['search, a frequent word', goal, () => search(word(0, 300))],
    ['search, the beginning of a word', goal, () => search(word(0, 20_000).slice(0, 4))],
    ['search, a name of 5,000 automations', goal, () => search('look alert')],
    ['search, a misspelt word', null, () => search(word(0, 20_000).replace(/^(...)(.)(.)/, '$1$3$2'))],
    ['search, an id', goal, () => search(`https://runyard.example/runs/${teamId}`)],
    ...reads.map(([title, read]): [string, number, () => Promise<unknown>] => [title, goal, read]),
  ];
}

const opened: SeededDatabase[] = [];
const rows: string[][] = [];
try {
  for (const size of sizes) opened.push(await open(size));
  const cases = await Promise.all(opened.map(({ db, seeded }) => casesOf(db, seeded)));
  for (const [index, [title, most]] of (cases[0] ?? []).entries()) {
    const reads = cases.map((each) => each[index]?.[2] ?? (async () => undefined));
    const ways = Object.fromEntries(reads.map((read, size) => [`of ${sizes[size]}`, () => timed(read)]));
    const samples = Object.values(await inTurns(ways, repetitions, 5));
    const p99 = percentile(samples.at(-1) ?? [], 0.99);
    const judged = most === null ? '' : p99 < most ? `${most}` : `${most}: **missed**`;
    const times = samples.map((sample) => [0.5, 0.99].map((part) => percentile(sample, part).toFixed(1)).join(' / '));
    rows.push([title, ...times, judged]);
    process.stderr.write(`${rows.at(-1)?.join(' | ')}\n`);
  }
} finally {
  for (const { remove } of opened) await remove();
}
const missed = rows.filter((row) => row.at(-1)?.includes('missed')).length;
report(
  `Reads of the dashboard over ${sizes.map((size) => size.toLocaleString('en')).join(', ')} runs`,
  `Each cell is the time (p50 / p99), in milliseconds, of the function that answers a route, with all its queries. One caller calls the function ${repetitions} times, in turns. For each number of runs there is a separate database on the embedded PostgreSQL. The runs are those of \`list.ts\`, spread evenly over 180 days. The team has the largest allowed number of factories, automations, webhooks, environments and schedules, and 200 people, each with the largest allowed number of saved views. Goal for the p99 of the default views of the dashboard, in the database with the most runs: ${goal} ms. **${missed === 0 ? 'All goals are met.' : `${missed} rows miss it.`}**`,
  ['read', ...sizes.map((size) => `${size.toLocaleString('en')} runs`), 'goal'],
  rows,
);
