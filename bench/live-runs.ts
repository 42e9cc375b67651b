/** Measures the statements that the service repeats while runs are live, with 1,000 to 20,000 live runs in one database. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { renewLeases } from '../packages/service/src/runs/executions/lease/connection-rows.ts';
import { beatServiceInstance } from '../packages/service/src/runs/executions/lease/heartbeat.ts';
import { measureQueueAndWorkers } from '../packages/service/src/runs/executions/queue/measure.ts';
import { reconcile } from '../packages/service/src/runs/executions/reconcile/reconcile.ts';
import { assignNext } from '../packages/service/test/assign-next.ts';
import { insertTeam, openTestExecutions } from '../packages/service/test/executions.ts';
import { copyRuns } from './copied-runs.ts';
import { median, report } from './report.ts';
import { inTurns, timed } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 30);
const sizes = (process.env.BENCH_LIVE ?? '1000,5000,20000').split(',').map(Number);
/** Runs of one worker. */
const ofWorker = 100;
const instance = '01900000-0000-7000-8000-000000000001';

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-live-'));
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
process.env.TEST_DATABASE_URL = server.url;
const opened: Awaited<ReturnType<typeof openLive>>[] = [];
const rows: (string | number)[][] = [];
try {
  for (const size of sizes) opened.push(await openLive(size));
  for (const name of Object.keys(opened[0]?.works ?? {})) {
    const samples = await inTurns(
      Object.fromEntries(opened.map(({ size, works }) => [size, () => timed(works[name] ?? (() => undefined))])),
      rounds,
      3,
    );
    rows.push([name, ...sizes.map((size) => median(samples[size] ?? []).toFixed(1))]);
    process.stderr.write(`${rows.at(-1)?.join(' | ')}\n`);
  }
  rows.push(['bytes of the log for a renewed lease', ...(await Promise.all(opened.map(({ logBytes }) => logBytes())))]);
  const bytes = opened.at(-1)?.bytesOfRun;
  report(
    'Live runs on one database',
    `The table shows milliseconds (medians of ${rounds} rounds in turns) for databases with different numbers of live runs, on the embedded PostgreSQL. Each worker executes ${ofWorker} of these runs. A run and its execution take ${await bytes?.()} bytes in tables and indexes.`,
    ['statement', ...sizes.map((size) => `${size.toLocaleString('en')} live`)],
    rows,
  );
} finally {
  for (const { close } of opened) await close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Opens a database in which this number of runs is live: half of them in one team, the others in 100 teams. */
async function openLive(size: number) {
  const test = await openTestExecutions({ limit: 1_000_000 });
  const { db } = test.deps;
  const small: string[] = [];
  while (small.length < 100) small.push(await insertTeam(test.database, 1_000_000));
  const first = await test.newRun();
  const connections: string[] = [];
  while (connections.length < size / ofWorker) connections.push(await test.newConnection());
  const live = { count: size / 2, state: 'INPROGRESS', phase: 'running', pools: [''], connections };
  await copyRuns(db, first, { ...live, teams: [test.teamId] });
  await copyRuns(db, first, { ...live, teams: small });
  const waiting = { count: 200, state: 'QUEUED', phase: 'queued' };
  await copyRuns(db, first, { ...waiting, teams: [test.teamId], pools: ['large'] });
  await copyRuns(db, first, { ...waiting, teams: small.slice(0, 1), pools: ['small'] });
  await db.onOwnConnection((client) => client.query('VACUUM ANALYZE'));
  await beatServiceInstance(test.deps, instance);
  let turn = 0;
  const next = () => connections[turn++ % connections.length] ?? '';
  const assign = (pool: string) => async () => {
    const slot = { connectionId: next(), workerId: 'w', workerInstance: 'i', pool, teamId: null };
    const assignment = await assignNext(test.deps, slot);
    if (typeof assignment === 'string') throw new Error(assignment);
  };
  const works: Record<string, () => Promise<unknown>> = {
    'assignment in a team with half of the live runs': assign('large'),
    'assignment in a team with a hundredth of the others': assign('small'),
    [`renewal of the ${ofWorker} leases of a worker`]: () => renewLeases(db, next(), test.deps.timing),
    'heartbeat of a service process': () => beatServiceInstance(test.deps, instance),
    'sweep for lost and overdue runs': () => reconcile(test.deps),
    'reading of the queue for metrics': () => measureQueueAndWorkers(db, []),
  };
  const number = async (text: string) => Number((await db.query<{ n: string }>(`SELECT (${text})::text AS n`))[0]?.n);
  const position = () => number(`pg_current_wal_lsn() - '0/0'`);
  return {
    size,
    works,
    logBytes: async () => {
      const some = connections.slice(0, 10);
      const renewAll = async () => {
        for (const id of some) await renewLeases(db, id, test.deps.timing);
      };
      // Renew all leases once before the measurement, because after a checkpoint, the first change of each page writes the whole page to
      // the log. These pages must not be counted.
      await renewAll();
      const before = await position();
      await renewAll();
      return Math.round(((await position()) - before) / (some.length * ofWorker));
    },
    bytesOfRun: async () =>
      Math.round(
        (await number(`pg_total_relation_size('runs') + pg_total_relation_size('executions')`)) / (size + 400),
      ),
    close: () => test.close(),
  };
}
