/** Creates per second through `POST /api/v1/agent/runs`, against a bare server with one INSERT, in turns on one database; then without the indexes of runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import pg from 'pg';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { startSystem } from '../test/support/system.ts';
import { loadWithCreates, type Round } from './create-load.ts';
import { median, report } from './report.ts';

const concurrency = Number(process.env.BENCH_CONCURRENCY ?? 32);
const secondsPerRound = Number(process.env.BENCH_SECONDS ?? 2);
const rounds = Number(process.env.BENCH_ROUNDS ?? 15);

const load = (url: string, headers: Record<string, string>) =>
  loadWithCreates(url, headers, { callers: concurrency, seconds: secondsPerRound });

const system = await startSystem({ workers: [], env: { RUNYARD_LOG: 'warn' } });
const embedded = await findEmbeddedPostgres(path.join(system.dataDir, 'postgres'));
if (!embedded) throw new Error('the embedded PostgreSQL does not run');
const bare = spawn(process.execPath, [path.join(import.meta.dirname, 'bare-server.ts')], {
  env: { PATH: process.env.PATH ?? '', BENCH_DATABASE_URL: embedded.url },
  stdio: ['pipe', 'pipe', 'inherit'],
});
try {
  const [line] = (await once(bare.stdout, 'data')) as [Buffer];
  const bareUrl = `http://127.0.0.1:${String(line).trim()}/`;
  const ourUrl = `${system.baseUrl()}/api/v1/agent/runs`;
  const key = { authorization: `Bearer ${system.key}` };
  await load(bareUrl, {});
  await load(ourUrl, key);
  const inTurns = async () => {
    const results = { bare: [] as Round[], ours: [] as Round[] };
    for (let round = 0; round < rounds; round += 1) {
      results.bare.push(await load(bareUrl, {}));
      results.ours.push(await load(ourUrl, key));
    }
    const ratios = results.ours.map((round, index) => round.perSecond / (results.bare[index]?.perSecond ?? Number.NaN));
    return {
      ...results,
      ratio: median(ratios).toFixed(2),
      spread: `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
    };
  };
  const whole = await inTurns();
  await dropIndexesOfRuns(embedded.url);
  const unlisted = await inTurns();
  const row = (name: string, of: Round[], ratio = '') => [
    name,
    Math.round(median(of.map((round) => round.perSecond))),
    median(of.map((round) => round.p50)).toFixed(1),
    median(of.map((round) => round.p99)).toFixed(1),
    ratio,
  ];
  report(
    'Creates per second',
    `${concurrency} callers, ${rounds} rounds of ${secondsPerRound} s in turns, embedded PostgreSQL, client on the same cores. Goal: ratio ≥ 0.7; median ratio **${whole.ratio}** (${whole.spread}). The indexes for the list of runs also cost time: with only the primary key, the ratio is ${unlisted.ratio} (${unlisted.spread}).`,
    ['server', 'creates/s (median)', 'p50 ms', 'p99 ms', 'ratio'],
    [
      row('node:http + one INSERT', whole.bare),
      row('Runyard', whole.ours, whole.ratio),
      row('node:http + one INSERT, again', unlisted.bare),
      row('Runyard, only the primary key as index', unlisted.ours, unlisted.ratio),
    ],
  );
} finally {
  bare.stdin.end();
  await system.stop();
}

/** All indexes of `runs` except its primary key. */
async function dropIndexesOfRuns(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(`DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT indexname FROM pg_indexes WHERE tablename = 'runs' AND indexname <> 'runs_pkey' LOOP
      EXECUTE format('DROP INDEX %I', name);
    END LOOP;
  END $$`);
  await client.end();
}
