/**
 * Measures signed deliveries per second through the ingress. Compares them, in turns on one database, with two bare servers that check
 * the same signature: one makes one INSERT, the other writes all rows.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { startSystem } from '../test/support/system.ts';
import { type DeliveryLoad, type DeliveryRound, loadWithDeliveries } from './delivery-load.ts';
import { cpuSecondsOf, cpuSecondsWithEnded, processesBelow } from './processes.ts';
import { median, percentile, report } from './report.ts';

const callers = Number(process.env.BENCH_CONCURRENCY ?? 32);
const seconds = Number(process.env.BENCH_SECONDS ?? 2);
const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const secret = 'bench-secret-of-the-webhooks';
const factories = 12;
const webhooksOfFactory = 20;
const floodRounds = 6;

/** Milliseconds of processor time for one delivery. `database`: the time of PostgreSQL, including its background processes. */
interface CpuTimes {
  readonly server: number;
  readonly database: number;
  readonly sender: number;
}
type MeasuredRound = DeliveryRound & { readonly cpu: CpuTimes };

const system = await startSystem({ workers: [], env: { RUNYARD_LOG: 'warn' } });
const embedded = await findEmbeddedPostgres(path.join(system.dataDir, 'postgres'));
if (!embedded) throw new Error('the embedded PostgreSQL does not run');
const client = new pg.Client({ connectionString: embedded.url });
await client.connect();
const startBare = (sample: string) =>
  spawn(process.execPath, [path.join(import.meta.dirname, 'bare-webhook-server.ts')], {
    env: {
      PATH: process.env.PATH ?? '',
      BENCH_DATABASE_URL: embedded.url,
      BENCH_SECRET: secret,
      BENCH_RUN_ID: sample,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
let bare: ReturnType<typeof startBare> | undefined;

async function post<T>(route: string, body: unknown): Promise<T> {
  const answer = await fetch(`${system.baseUrl()}/api/v1${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${system.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== 201) throw new Error(await answer.text());
  return (await answer.json()) as T;
}

/**
 * Creates factories with webhooks, and in each factory one automation for each payload filter. An automation selects all webhooks of its
 * factory.
 */
async function createWebhooks(count: number, filters: readonly object[]): Promise<string[]> {
  const urls: string[] = [];
  for (let factory = 0; factory < count; factory += 1) {
    const { uid } = await post<{ uid: string }>('/factory', { name: `F${factory}` });
    const body = { name: 'W', auth_mode: 'signature', signature_scheme: 'github', secret };
    const ids: string[] = [];
    for (let each = 0; each < webhooksOfFactory; each += 1) {
      const createdWebhook = await post<{ uid: string; url: string }>(`/factory/${uid}/webhooks`, body);
      urls.push(createdWebhook.url);
      ids.push(createdWebhook.uid);
    }
    for (const [index, payload] of filters.entries()) {
      const triggers = [{ provider: 'webhook', event: 'received', filter: { webhook_ids: ids, payload } }];
      await post(`/factory/${uid}/automations`, { name: `A${index}`, prompt: 'Look into it.', triggers });
    }
  }
  return urls;
}

/** Lists runs through the API again and again while `work` runs. Returns the latency of each request in milliseconds. */
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
  const ourUrls = await createWebhooks(factories, []);
  const matches = { action: ['failed'] };
  const unmatchedUrls = await createWebhooks(factories, [{ action: ['succeeded'] }]);
  const startingUrls = await createWebhooks(factories, [matches]);
  const twentyUrls = await createWebhooks(factories, [
    matches,
    ...Array.from({ length: 19 }, (_, n) => ({ number: [n] })),
  ]);
  await loadWithDeliveries({ urls: startingUrls.slice(0, 1), secret, callers: 1, seconds: 0.01 });
  const sample = await client.query<{ run_id: string }>('SELECT run_id FROM starts LIMIT 1');
  bare = startBare(sample.rows[0]?.run_id ?? '');
  const [line] = (await once(bare.stdout, 'data')) as [Buffer];
  const bareUrl = `http://127.0.0.1:${String(line).trim()}/`;
  const bareUrls = [bareUrl];
  const bareRowsUrls = [`${bareUrl}rows`];
  const load = async (urls: readonly string[], more: Partial<DeliveryLoad> = {}): Promise<MeasuredRound> => {
    // Reset the used budget of 60 deliveries a minute, because this benchmark does not measure the budget.
    await client.query(`UPDATE webhooks SET recent = '{}'`);
    const { pid = 0 } = urls === bareUrls || urls === bareRowsUrls ? (bare ?? {}) : system.service();
    const taken = () => ({
      server: cpuSecondsOf(pid),
      database: processesBelow(system.dataDir, 'postgres').reduce((sum, each) => sum + cpuSecondsWithEnded(each), 0),
      sender: process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6,
    });
    const before = taken();
    const round = await loadWithDeliveries({ urls, secret, callers, seconds, ...more });
    const after = taken();
    if (round.refused > 0) throw new Error(`${round.refused} deliveries were refused`);
    const each = (part: keyof CpuTimes) => (1000 * (after[part] - before[part])) / round.count;
    return { ...round, cpu: { server: each('server'), database: each('database'), sender: each('sender') } };
  };
  const cases: { name: string; urls: readonly string[]; more: Partial<DeliveryLoad>; rounds: MeasuredRound[] }[] = [
    { name: 'node:http + HMAC + one INSERT', urls: bareUrls, more: {}, rounds: [] },
    { name: 'node:http + HMAC + the rows of a delivery that starts a run', urls: bareRowsUrls, more: {}, rounds: [] },
    { name: 'accepted, no automation', urls: ourUrls, more: {}, rounds: [] },
    { name: 'duplicates', urls: ourUrls, more: { isRepeated: true }, rounds: [] },
    { name: 'accepted, one automation that does not match', urls: unmatchedUrls, more: {}, rounds: [] },
    { name: 'accepted, starts a run', urls: startingUrls, more: {}, rounds: [] },
    { name: 'accepted, starts a run, 19 automations do not match', urls: twentyUrls, more: {}, rounds: [] },
  ];
  for (const { urls, more } of cases) await load(urls, more);
  for (let round = 0; round < rounds; round += 1)
    for (const each of cases) each.rounds.push(await load(each.urls, each.more));
  const roundsOf = (urls: readonly string[]) => cases.find((each) => each.urls === urls)?.rounds ?? [];
  const startedToRows = roundsOf(startingUrls).map(
    (round, index) => round.perSecond / (roundsOf(bareRowsUrls)[index]?.perSecond ?? Number.NaN),
  );
  const cpuOf = (of: readonly MeasuredRound[]) => median(of.map(({ cpu }) => cpu.server + cpu.database));
  const cpuRatio = cpuOf(roundsOf(bareRowsUrls)) / cpuOf(roundsOf(startingUrls));
  const perSecond = (of: MeasuredRound[]) => median(of.map((round) => round.perSecond));
  const half = await load(ourUrls, { perSecond: perSecond(roundsOf(ourUrls)) / 2, seconds: 2 * seconds });
  const halfOfStarts = await load(startingUrls, {
    perSecond: perSecond(roundsOf(startingUrls)) / 2,
    seconds: 2 * seconds,
  });
  const [flooded = ''] = ourUrls;
  const quiet: number[] = [];
  const during: number[] = [];
  // Measure without and with deliveries in turns, so that a slow moment of the machine affects both measurements alike. A webhook accepts 60
  // deliveries in a minute. Each round sends 10 a second for 3 s, so the second round uses up this budget, and later rounds send
  // deliveries above the budget.
  for (let round = 0; round < floodRounds; round += 1) {
    quiet.push(...(await apiDuring(delay(3_000))));
    const flood = loadWithDeliveries({ urls: [flooded], secret, callers: 4, seconds: 3, perSecond: 10 });
    during.push(...(await apiDuring(flood)));
  }
  const row = (name: string, of: MeasuredRound[]) => [
    name,
    Math.round(perSecond(of)),
    median(of.map((round) => round.p50)).toFixed(1),
    median(of.map((round) => round.p99)).toFixed(1),
    ...(['server', 'database', 'sender'] as const).map((part) => median(of.map(({ cpu }) => cpu[part])).toFixed(2)),
    (perSecond(of) / perSecond(roundsOf(bareUrls))).toFixed(2),
  ];
  const api = (part: number) => [quiet, during].map((sample) => percentile(sample, part).toFixed(1)).join(' and ');
  report(
    'Deliveries per second',
    `Senders send deliveries of 1 KB with a signature in GitHub's format to ${ourUrls.length} webhooks without automations and ${unmatchedUrls.length} for each kind of automation in the table, on one service process without workers; ${callers} senders, ${rounds} rounds of ${seconds} s in turns, on the embedded PostgreSQL. Senders, server and PostgreSQL share the cores, so the sum of their CPU milliseconds for one delivery limits the rate. Other programs of the machine lower Runyard's rate more than the rate of the bare server: 16 connections of the bare server compete for the cores at the same time, but only two of Runyard. The second bare server writes the same rows as Runyard for a delivery that starts a run, and reduces the budget in the same way. It uses one statement for each delivery, on copies of the tables with all their columns, constraints and indexes. It has no triggers and foreign keys, sends no notices, and checks only the signature. Goals: ratio to the first bare server ≥ 0.5; deliveries that start a run ≥ 0.7 of the second bare server (median **${median(startedToRows).toFixed(2)}**, ${Math.min(...startedToRows).toFixed(2)} to ${Math.max(...startedToRows).toFixed(2)}; by processor time of server and PostgreSQL ${cpuRatio.toFixed(2)}); p99 < 50 ms at half load. \`GET /agent/runs\` was measured without deliveries, and while one webhook gets ten times its budget (600 deliveries a minute): p50 ${api(0.5)} ms, p99 ${api(0.99)} ms, in ${floodRounds} rounds of 3 s each.`,
    [
      'deliveries',
      'per second (median)',
      'p50 ms',
      'p99 ms',
      'CPU ms of the server',
      'of PostgreSQL',
      'of a sender',
      'ratio',
    ],
    [
      ...cases.map(({ name, rounds: of }) => row(name, of)),
      [...row('accepted, no automation, at half load', [half]).slice(0, -1), ''],
      [...row('accepted, starts a run, at half load', [halfOfStarts]).slice(0, -1), ''],
    ],
  );
} finally {
  bare?.stdin.end();
  await client.end();
  await system.stop();
}
