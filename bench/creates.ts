/**
 * Measures creates per second through `POST /api/v1/agent/runs`. For comparison, measures two bare servers on the same database, in turns
 * with the service: one makes one INSERT for each create, the other writes the same rows as the service to tables with the same indexes.
 * Then measures the service and the first bare server again, without the indexes of `runs`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import pg from 'pg';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { startSystem } from '../test/support/system.ts';
import { createBody, loadWithCreates, type Round } from './create-load.ts';
import { cpuSecondsOf, cpuSecondsWithEnded, processesBelow } from './processes.ts';
import { median, report } from './report.ts';

const concurrency = Number(process.env.BENCH_CONCURRENCY ?? 32);
const secondsPerRound = Number(process.env.BENCH_SECONDS ?? 2);
const rounds = Number(process.env.BENCH_ROUNDS ?? 15);

/** The result of one round, with processor milliseconds for each create. */
type MeasuredRound = Round & { readonly server: number; readonly database: number };

const system = await startSystem({ workers: [], env: { RUNYARD_LOG: 'warn' } });
const embedded = await findEmbeddedPostgres(path.join(system.dataDir, 'postgres'));
if (!embedded) throw new Error('the embedded PostgreSQL does not run');
const ourUrl = `${system.baseUrl()}/api/v1/agent/runs`;
const key = { authorization: `Bearer ${system.key}` };
const created = await fetch(ourUrl, {
  method: 'POST',
  headers: { ...key, 'content-type': 'application/json' },
  body: createBody,
});
const { run_id: sample } = (await created.json()) as { run_id: string };
const bare = spawn(process.execPath, [path.join(import.meta.dirname, 'bare-server.ts')], {
  env: { PATH: process.env.PATH ?? '', BENCH_DATABASE_URL: embedded.url, BENCH_RUN_ID: sample },
  stdio: ['pipe', 'pipe', 'inherit'],
});
try {
  const [line] = (await once(bare.stdout, 'data')) as [Buffer];
  const bareUrl = `http://127.0.0.1:${String(line).trim()}/`;
  const load = async (url: string, seconds = secondsPerRound): Promise<MeasuredRound> => {
    const { pid = 0 } = url === ourUrl ? system.service() : bare;
    const taken = () => ({
      server: cpuSecondsOf(pid),
      database: processesBelow(system.dataDir, 'postgres').reduce((sum, each) => sum + cpuSecondsWithEnded(each), 0),
    });
    const before = taken();
    const round = await loadWithCreates(url, url === ourUrl ? key : {}, { callers: concurrency, seconds });
    const after = taken();
    const each = (part: keyof typeof after) => (1000 * (after[part] - before[part])) / round.creates;
    return { ...round, server: each('server'), database: each('database') };
  };
  /**
   * Sends creates for up to ten seconds before the first round, because on a busy machine V8 needs more than two seconds to optimize a
   * server's code.
   */
  const warmUp = async (url: string): Promise<void> => {
    for (let count = 0, tries = 0; count < 2000 && tries < 5; tries += 1) count += (await load(url, 2)).creates;
  };
  const inTurns = async <Name extends string>(urls: Readonly<Record<Name, string>>) => {
    const names = Object.keys(urls) as Name[];
    const results = Object.fromEntries(names.map((name) => [name, [] as MeasuredRound[]])) as Record<
      Name,
      MeasuredRound[]
    >;
    for (const name of names) await warmUp(urls[name]);
    await analyze(embedded.url);
    for (let round = 0; round < rounds; round += 1)
      for (const name of names) results[name].push(await load(urls[name]));
    return results;
  };
  const ratiosTo = (ours: readonly Round[], base: readonly Round[]) => {
    const ratios = ours.map((round, index) => round.perSecond / (base[index]?.perSecond ?? Number.NaN));
    return {
      ratio: median(ratios).toFixed(2),
      spread: `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
    };
  };
  const whole = await inTurns({ one: bareUrl, rows: `${bareUrl}rows`, ours: ourUrl });
  await dropIndexesOfRuns(embedded.url);
  const unlisted = await inTurns({ one: bareUrl, ours: ourUrl });
  const row = (name: string, of: MeasuredRound[], ...ratios: string[]) => [
    name,
    Math.round(median(of.map((round) => round.perSecond))),
    median(of.map((round) => round.p50)).toFixed(1),
    median(of.map((round) => round.p99)).toFixed(1),
    median(of.map((round) => round.server)).toFixed(2),
    median(of.map((round) => round.database)).toFixed(2),
    ...ratios,
  ];
  const toOne = ratiosTo(whole.ours, whole.one);
  const toRows = ratiosTo(whole.ours, whole.rows);
  const cpuOf = (of: readonly MeasuredRound[]) => median(of.map(({ server, database }) => server + database));
  const unlistedToOne = ratiosTo(unlisted.ours, unlisted.one);
  report(
    'Creates per second',
    `${concurrency} callers, ${rounds} rounds of ${secondsPerRound} s in turns, on the embedded PostgreSQL. The callers use the same cores as the server. The second bare server writes the same rows as Runyard, with one statement for each create. It writes to copies of the tables with all their columns, constraints and indexes. It has no triggers and foreign keys, sends no notices, and checks nothing. Runyard writes all creates that arrive together in one transaction. Goal: at least 0.7 times as many creates a second as the second bare server, which is the ratio to the same rows. Median of this ratio: **${toRows.ratio}** (${toRows.spread}); median of the ratio to one INSERT: ${toOne.ratio} (${toOne.spread}). Computed from the processor time of server and PostgreSQL, the ratio to the same rows is ${(cpuOf(whole.rows) / cpuOf(whole.ours)).toFixed(2)}. The indexes for the list of runs also cost time: if the table \`runs\` has only its primary key, the ratio to one INSERT is ${unlistedToOne.ratio} (${unlistedToOne.spread}).`,
    [
      'server',
      'creates/s (median)',
      'p50 ms',
      'p99 ms',
      'CPU ms of the server',
      'of PostgreSQL',
      'ratio to one INSERT',
      'ratio to the same rows',
    ],
    [
      row('node:http + one INSERT', whole.one, '', ''),
      row('node:http + the same rows and indexes', whole.rows, ratiosTo(whole.rows, whole.one).ratio, ''),
      row('Runyard', whole.ours, toOne.ratio, toRows.ratio),
      row('node:http + one INSERT, again', unlisted.one, '', ''),
      row('Runyard, only the primary key as index', unlisted.ours, unlistedToOne.ratio, ''),
    ],
  );
} finally {
  bare.stdin.end();
  await system.stop();
}

/** Gives the planner statistics, as PostgreSQL does by itself within a minute. Without them, its plans are those for empty tables. */
async function analyze(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query('ANALYZE');
  await client.end();
}

/** Drops all indexes of the table `runs` except the primary key. */
async function dropIndexesOfRuns(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(`DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND tablename = 'runs' AND indexname <> 'runs_pkey' LOOP
      EXECUTE format('DROP INDEX %I', name);
    END LOOP;
  END $$`);
  await client.end();
}
