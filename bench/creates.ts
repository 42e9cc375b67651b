/** Creates per second through `POST /api/v1/agent/runs`, against a bare server with one INSERT, in turns on one database. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import { findEmbeddedPostgres } from '../packages/service/src/store/embedded/start.ts';
import { startSystem } from '../test/support/system.ts';
import { median, percentile, report } from './report.ts';

const concurrency = Number(process.env.BENCH_CONCURRENCY ?? 32);
const secondsPerRound = Number(process.env.BENCH_SECONDS ?? 4);
const rounds = Number(process.env.BENCH_ROUNDS ?? 5);

interface Round {
  perSecond: number;
  p50: number;
  p99: number;
}

const body = JSON.stringify({
  prompt: `Look at the failing build.\n${'It fails in the linker. '.repeat(10)}`,
  title: 'Build',
});

/** `concurrency` callers, each sending its next request when the last one was answered. */
async function load(url: string, headers: Record<string, string>): Promise<Round> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: concurrency });
  const latencies: number[] = [];
  const started = performance.now();
  const end = started + secondsPerRound * 1000;
  const post = () =>
    new Promise<void>((resolve, reject) => {
      const at = performance.now();
      const request = http.request(
        url,
        {
          agent,
          method: 'POST',
          headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
        },
        (response) => {
          if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`));
          response.resume().once('end', () => {
            latencies.push(performance.now() - at);
            resolve();
          });
        },
      );
      request.once('error', reject);
      request.end(body);
    });
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (performance.now() < end) await post();
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  agent.destroy();
  return { perSecond: latencies.length / seconds, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

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
