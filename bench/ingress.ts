/** Signed deliveries per second through the ingress, against a bare server with the same signature and one INSERT, in turns on one database. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import pg from 'pg';
import { findEmbeddedPostgres } from '../packages/service/src/store/embedded/start.ts';
import { startSystem } from '../test/support/system.ts';
import { type DeliveryLoad, type DeliveryRound, loadWithDeliveries } from './delivery-load.ts';
import { median, percentile, report } from './report.ts';

const callers = Number(process.env.BENCH_CONCURRENCY ?? 32);
const seconds = Number(process.env.BENCH_SECONDS ?? 2);
const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const secret = 'bench-secret-of-the-webhooks';
const factories = 10;
const webhooksOfFactory = 20;

const system = await startSystem({ workers: [], env: { RUNYARD_LOG: 'warn' } });
const embedded = await findEmbeddedPostgres(path.join(system.dataDir, 'postgres'));
if (!embedded) throw new Error('the embedded PostgreSQL does not run');
const client = new pg.Client({ connectionString: embedded.url });
await client.connect();
const bare = spawn(process.execPath, [path.join(import.meta.dirname, 'bare-webhook-server.ts')], {
  env: { PATH: process.env.PATH ?? '', BENCH_DATABASE_URL: embedded.url, BENCH_SECRET: secret },
  stdio: ['pipe', 'pipe', 'inherit'],
});

async function post<T>(route: string, body: unknown): Promise<T> {
  const answer = await fetch(`${system.baseUrl()}/api/v1${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${system.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== 201) throw new Error(await answer.text());
  return (await answer.json()) as T;
}

async function createWebhooks(): Promise<string[]> {
  const urls: string[] = [];
  for (let factory = 0; factory < factories; factory += 1) {
    const { uid } = await post<{ uid: string }>('/factory', { name: `F${factory}` });
    const body = { name: 'W', auth_mode: 'signature', signature_scheme: 'github', secret };
    for (let each = 0; each < webhooksOfFactory; each += 1)
      urls.push((await post<{ url: string }>(`/factory/${uid}/webhooks`, body)).url);
  }
  return urls;
}

/** Latencies of a list of runs through the API, milliseconds, while `work` runs. */
async function apiDuring(work: Promise<unknown>): Promise<number[]> {
  const latencies: number[] = [];
  let isOver = false;
  const over = work.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const at = performance.now();
    const answer = await fetch(`${system.baseUrl()}/api/v1/agent/runs`, {
      headers: { authorization: `Bearer ${system.key}` },
    });
    await answer.arrayBuffer();
    latencies.push(performance.now() - at);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await over;
  return latencies;
}

try {
  const [line] = (await once(bare.stdout, 'data')) as [Buffer];
  const bareUrls = [`http://127.0.0.1:${String(line).trim()}/`];
  const ourUrls = await createWebhooks();
  const load = async (urls: readonly string[], more: Partial<DeliveryLoad> = {}): Promise<DeliveryRound> => {
    // The budget of 60 a minute is not what is measured.
    await client.query(`UPDATE webhooks SET recent = '{}'`);
    const round = await loadWithDeliveries({ urls, secret, callers, seconds, ...more });
    if (round.refused > 0) throw new Error(`${round.refused} deliveries were refused`);
    return round;
  };
  await load(bareUrls);
  await load(ourUrls);
  const results = { bare: [] as DeliveryRound[], ours: [] as DeliveryRound[], duplicates: [] as DeliveryRound[] };
  for (let round = 0; round < rounds; round += 1) {
    results.bare.push(await load(bareUrls));
    results.ours.push(await load(ourUrls));
    results.duplicates.push(await load(ourUrls, { isRepeated: true }));
  }
  const perSecond = (of: DeliveryRound[]) => median(of.map((round) => round.perSecond));
  const half = await load(ourUrls, { perSecond: perSecond(results.ours) / 2, seconds: 3 * seconds });
  const quiet = await apiDuring(new Promise((resolve) => setTimeout(resolve, 4_000)));
  const [flooded = ''] = ourUrls;
  const flood = loadWithDeliveries({ urls: [flooded], secret, callers: 4, seconds: 4, perSecond: 10 });
  const during = await apiDuring(flood);
  const row = (name: string, of: DeliveryRound[]) => [
    name,
    Math.round(perSecond(of)),
    median(of.map((round) => round.p50)).toFixed(1),
    median(of.map((round) => round.p99)).toFixed(1),
    (perSecond(of) / perSecond(results.bare)).toFixed(2),
  ];
  const api = (sample: number[]) => `${percentile(sample, 0.99).toFixed(1)} ms`;
  report(
    'Deliveries per second',
    `Deliveries of 1 KB with the signature of GitHub, which match no automation, to ${ourUrls.length} webhooks of one service process; ${callers} senders, ${rounds} rounds of ${seconds} s in turns, embedded PostgreSQL, senders on the same cores. Goal: ratio ≥ 0.5 and p99 < 50 ms at half load. While one webhook gets ten times its budget (600 a minute), the p99 of \`GET /agent/runs\` is ${api(during)}; without deliveries it is ${api(quiet)}.`,
    ['deliveries', 'per second (median)', 'p50 ms', 'p99 ms', 'ratio'],
    [
      row('node:http + HMAC + one INSERT', results.bare),
      row('accepted', results.ours),
      row('duplicates', results.duplicates),
      [...row('accepted, at half load', [half]).slice(0, 4), ''],
    ],
  );
} finally {
  bare.stdin.end();
  await client.end();
  await system.stop();
}
