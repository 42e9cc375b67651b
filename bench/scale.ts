/**
 * Measures, for each operation, the processor time, the bytes of PostgreSQL's write-ahead log, and what the connections wait for
 * inside PostgreSQL, while 1, 2 or 4 service processes share one database.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { migrateDatabase } from '../packages/service/src/platform/store/migrations/migrate.ts';
import { appendTimelineEvent } from '../packages/service/src/runs/executions/timeline/timeline.ts';
import { type OneService, startService } from '../test/support/service-process.ts';
import { claimAll, createTeams, fillQueue, removeClaimed } from './claim-load.ts';
import { loadWithCreates } from './create-load.ts';
import { loadWithDeliveries } from './delivery-load.ts';
import { cpuSecondsOf, cpuSecondsWithEnded, processesBelow } from './processes.ts';
import { startReaders } from './readers.ts';
import { median, report } from './report.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 4);
const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const callers = Number(process.env.BENCH_CONCURRENCY ?? 32);
const streams = Number(process.env.BENCH_STREAMS ?? 400);
const claims = Number(process.env.BENCH_CLAIMS ?? 600);
const eventsPerSecond = 100;
const processCounts = [1, 2, 4];
/**
 * Number of factories. A webhook accepts 60 deliveries a minute, so there are so many webhooks that together they accept all deliveries
 * of a round.
 */
const factories = 12;
const webhooksOfFactory = 20;
const key = 'ryk_the-key-of-the-benchmark-0123456789';
const secret = 'bench-secret-of-the-webhooks';
/** SQL: the id of the team to which the key belongs. The service has created this team first. */
const teamOfKey = '(SELECT id FROM teams ORDER BY number LIMIT 1)';

/**
 * The result of a round of one operation. `service` and `database`: milliseconds of processor time for one operation. `logBytes`: bytes
 * for one operation.
 */
interface Measured {
  readonly perSecond: number;
  readonly service: number;
  readonly database: number;
  readonly logBytes: number;
  /** For each reason to wait, the average number of connections that waited for it. */
  readonly waits: ReadonlyMap<string, number>;
}

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-scale-'));
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
const db = await openDatabase({ address: { connectionString: server.url }, maxConnections: 2, log: silentLog });
await migrateDatabase(db);
const watcher = new pg.Client({ connectionString: server.url, application_name: 'bench' });
await watcher.connect();
const services: OneService[] = [];

/** Starts or stops services until `count` services run, then waits for the work that follows a start. */
async function setServices(count: number): Promise<void> {
  while (services.length < count) services.push(await startService({ databaseUrl: server.url, key }));
  while (services.length > count) await services.pop()?.stop();
  await delay(1_000);
}

async function post<T>(route: string, body: unknown, status: number): Promise<T> {
  const answer = await fetch(`${services[0]?.origin}/api/v1${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== status) throw new Error(await answer.text());
  return (await answer.json()) as T;
}

/** Creates webhooks and returns their paths. If `starts` is true, each delivery to these webhooks starts a run. */
async function createWebhooks(starts: boolean): Promise<string[]> {
  const webhook = { name: 'W', auth_mode: 'signature', signature_scheme: 'github', secret };
  const paths: string[] = [];
  for (let factory = 0; factory < factories; factory += 1) {
    const { uid } = await post<{ uid: string }>('/factory', { name: `F${factory}` }, 201);
    const ids: string[] = [];
    for (let each = 0; each < webhooksOfFactory; each += 1) {
      const created = await post<{ uid: string; url: string }>(`/factory/${uid}/webhooks`, webhook, 201);
      ids.push(created.uid);
      paths.push(new URL(created.url).pathname);
    }
    const filter = { webhook_ids: ids, payload: { action: ['failed'] } };
    const triggers = [{ provider: 'webhook', event: 'received', filter }];
    if (starts) await post(`/factory/${uid}/automations`, { name: 'A', prompt: 'Look into it.', triggers }, 201);
  }
  return paths;
}

/**
 * Runs `work`. Every 20 ms until `work` ends, reads for which reasons the connections of the services wait. Ignores waits for the next
 * statement.
 */
async function waitsDuring<T>(work: Promise<T>): Promise<{ result: T; waits: Map<string, number> }> {
  const seen = new Map<string, number>();
  let looks = 0;
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const { rows } = await watcher.query<{ event: string }>(
      `SELECT wait_event_type || ' ' || wait_event AS event FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND state <> 'idle' AND application_name <> 'bench' AND wait_event IS NOT NULL AND wait_event_type <> 'Client'`,
    );
    for (const { event } of rows) seen.set(event, (seen.get(event) ?? 0) + 1);
    looks += 1;
    await delay(20);
  }
  return { result: await over, waits: new Map([...seen].map(([event, count]) => [event, count / looks])) };
}

const cpuOfDatabase = () => processesBelow(folder, 'postgres').reduce((sum, pid) => sum + cpuSecondsWithEnded(pid), 0);
const logBytes = async () =>
  Number((await watcher.query(`SELECT pg_current_wal_lsn() - '0/0' AS bytes`)).rows[0].bytes);

/** Measures one round. `work` returns the number of operations. */
async function measure(work: () => Promise<number>): Promise<Measured> {
  const cpuOfServices = () => services.reduce((sum, { pid }) => sum + cpuSecondsOf(pid), 0);
  const before = [cpuOfServices(), cpuOfDatabase(), await logBytes()] as const;
  const started = performance.now();
  const { result: count, waits } = await waitsDuring(work());
  const took = (performance.now() - started) / 1000;
  const each = (after: number, at: number) => (after - at) / count;
  return {
    perSecond: count / took,
    service: 1000 * each(cpuOfServices(), before[0]),
    database: 1000 * each(cpuOfDatabase(), before[1]),
    logBytes: each(await logBytes(), before[2]),
    waits,
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

async function creates(): Promise<number> {
  const load = { callers, seconds };
  const headers = { authorization: `Bearer ${key}` };
  const all = services.map(({ origin }) => loadWithCreates(`${origin}/api/v1/agent/runs`, headers, load));
  return sum((await Promise.all(all)).map((round) => round.creates));
}

async function deliveries(paths: readonly string[]): Promise<number> {
  // Reset the used budget of 60 deliveries a minute, because this benchmark does not measure the budget.
  await db.query(`UPDATE webhooks SET recent = '{}'`);
  const urls = paths.flatMap((each) => services.map(({ origin }) => origin + each));
  const { count, refused } = await loadWithDeliveries({ urls, secret, callers, seconds });
  if (refused > 0) throw new Error(`${refused} deliveries were refused`);
  return count;
}

/** Writes events that the streams of all processes receive. One operation is the receipt of one event by one stream. */
async function measureStreams(): Promise<Measured> {
  const runs = await db.query<{ id: string; execution: string }>(
    `SELECT id, current_execution_id AS execution FROM runs WHERE team_id = ${teamOfKey} ORDER BY id LIMIT $1`,
    [streams],
  );
  const readers = await startReaders();
  try {
    for (const [index, { origin }] of services.entries()) {
      const paths = runs.filter((_, n) => n % services.length === index).map(({ id }) => `/agent/runs/${id}/events`);
      await readers.open({ port: Number(new URL(origin).port), key, paths });
    }
    await delay(1_000);
    await readers.takeReport();
    return await measure(async () => {
      const started = performance.now();
      for (let count = 0; performance.now() - started < seconds * 1000; count += 1) {
        const run = runs[(count * 7) % runs.length];
        if (!run) break;
        const payload = { sent: performance.timeOrigin + performance.now(), name: 'An event of usual length' };
        const event = { runId: run.id, executionId: run.execution, type: 'setup_step_started', payload } as const;
        await appendTimelineEvent(db, event);
        await delay(Math.max(0, started + ((count + 1) * 1000) / eventsPerSecond - performance.now()));
      }
      await delay(500);
      return (await readers.takeReport()).lags.length;
    });
  } finally {
    await readers.stop();
  }
}

/**
 * Fake workers, one for each process, claim all executions of a queue. The executions belong to the teams in equal numbers. One
 * operation is the assignment of an execution and its claim.
 */
async function measureClaims(ofTeams: readonly string[]): Promise<Measured> {
  const [run] = await db.query<{ id: string }>(`SELECT id FROM runs WHERE team_id = ${teamOfKey} ORDER BY id LIMIT 1`);
  await fillQueue(db, run?.id ?? '', ofTeams, claims);
  const origins = services.map(({ origin }) => origin);
  const measured = await measure(async () => {
    await claimAll(origins, key, claims);
    return claims;
  });
  await removeClaimed(db);
  return measured;
}

const teamsOfClaims = 100;
const operations = [
  'create',
  'delivery, no automation',
  'delivery that starts a run',
  'claim, one team',
  `claim, ${teamsOfClaims} teams`,
  'event to a stream',
  'idle, 1 s',
];
const samples = new Map<string, Measured[]>();
try {
  await setServices(1);
  const [plain, starting] = [await createWebhooks(false), await createWebhooks(true)];
  const [first] = await db.query<{ id: string }>(`SELECT ${teamOfKey} AS id`);
  const teams = await createTeams(db, first?.id ?? '', teamsOfClaims);
  const work: Record<string, () => Promise<Measured>> = {
    create: () => measure(creates),
    'delivery, no automation': () => measure(() => deliveries(plain)),
    'delivery that starts a run': () => measure(() => deliveries(starting)),
    'claim, one team': () => measureClaims(teams.slice(0, 1)),
    [`claim, ${teamsOfClaims} teams`]: () => measureClaims(teams),
    'event to a stream': measureStreams,
    'idle, 1 s': () =>
      measure(async () => {
        await delay(seconds * 1000);
        return seconds;
      }),
  };
  for (let round = -1; round < rounds; round += 1) {
    // Use 1, 2, 4 processes in one round and 4, 2, 1 in the next, so that fewer services must start: a round begins with as many services
    // as the round before it ended with.
    for (const count of round % 2 === 0 ? processCounts : processCounts.toReversed()) {
      await setServices(count);
      for (const operation of operations) {
        const measured = await work[operation]?.();
        const name = `${operation}|${count}`;
        if (measured && round >= 0) samples.set(name, [...(samples.get(name) ?? []), measured]);
      }
    }
  }
} finally {
  while (services.length > 0) await services.pop()?.stop();
  await watcher.end();
  await db.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

/** The most frequent waits of all rounds. */
function waitsOf(sample: readonly Measured[]): string {
  const events = [...new Set(sample.flatMap(({ waits }) => [...waits.keys()]))];
  const means = events.map(
    (event) => [event, sum(sample.map(({ waits }) => waits.get(event) ?? 0)) / sample.length] as const,
  );
  const most = means.filter(([, mean]) => mean >= 0.1).sort(([, a], [, b]) => b - a);
  return most
    .slice(0, 3)
    .map(([event, mean]) => `${event} ${mean.toFixed(1)}`)
    .join(', ');
}

report(
  'Operations over several service processes',
  `Several service processes without workers share one embedded PostgreSQL. The load is ${callers} callers (for creates: ${callers} for each process), ${streams} streams and ${eventsPerSecond} events a second. The table shows medians of ${rounds} rounds of ${seconds} s, in turns. For the rows "claim", a round is a queue of ${claims} executions, and each process has a connection to one fake worker that claims each execution that it gets. Callers, services and PostgreSQL share the cores, so the rate cannot grow with the number of processes. Compare the processor time of an operation instead. The column "waits" lists reasons for which connections of the services wait inside PostgreSQL, each with the average number of such connections; numbers below 0.1 are left out. The rows "idle" show the processor time of all services and of PostgreSQL in a second without requests.`,
  ['operation', 'processes', 'per second', 'CPU ms of the services', 'of PostgreSQL', 'log bytes', 'waits'],
  operations.flatMap((operation) =>
    processCounts.map((count) => {
      const sample = samples.get(`${operation}|${count}`) ?? [];
      const of = (part: 'perSecond' | 'service' | 'database' | 'logBytes') => median(sample.map((each) => each[part]));
      const rate = operation.startsWith('idle') ? '' : of('perSecond').toFixed(0);
      return [
        operation,
        count,
        rate,
        of('service').toFixed(2),
        of('database').toFixed(2),
        of('logBytes').toFixed(0),
        waitsOf(sample),
      ];
    }),
  ),
);
