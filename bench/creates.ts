/** Creates per second through `POST /api/v1/agent/runs`, against a bare server with one INSERT, in turns on one database. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { findEmbeddedPostgres } from '../packages/service/src/store/embedded/start.ts';
import { startSystem } from '../test/support/system.ts';
import { loadWithCreates, type Round } from './create-load.ts';
import { median, report } from './report.ts';

const concurrency = Number(process.env.BENCH_CONCURRENCY ?? 32);
const secondsPerRound = Number(process.env.BENCH_SECONDS ?? 4);
const rounds = Number(process.env.BENCH_ROUNDS ?? 5);

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
  const results = { bare: [] as Round[], ours: [] as Round[] };
  for (let round = 0; round < rounds; round += 1) {
    results.bare.push(await load(bareUrl, {}));
    results.ours.push(await load(ourUrl, key));
  }
  const row = (name: string, of: Round[]) => [
    name,
    Math.round(median(of.map((round) => round.perSecond))),
    median(of.map((round) => round.p50)).toFixed(1),
    median(of.map((round) => round.p99)).toFixed(1),
  ];
  const ratios = results.ours.map((round, index) => round.perSecond / (results.bare[index]?.perSecond ?? Number.NaN));
  report(
    'Creates per second',
    `${concurrency} callers, ${rounds} rounds of ${secondsPerRound} s in turns, embedded PostgreSQL, client on the same cores. Goal: ratio ≥ 0.7; median ratio **${median(ratios).toFixed(2)}** (${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}).`,
    ['server', 'creates/s (median)', 'p50 ms', 'p99 ms'],
    [row('node:http + one INSERT', results.bare), row('Runyard', results.ours)],
  );
} finally {
  bare.stdin.end();
  await system.stop();
}
