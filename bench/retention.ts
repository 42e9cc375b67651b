/** The nightly sweep over many old runs, and what it is worth that each batch begins where the last one ended. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { deleteOldDetail, deleteOldRuns, start } from '../packages/service/src/retention/runs.ts';
import { sweepWhenDue } from '../packages/service/src/retention/sweep.ts';
import { openTestEngine, type TestEngine } from '../packages/service/src/runs/test-engine.ts';
import type { Database } from '../packages/service/src/store/database.ts';
import { startEmbeddedPostgres } from '../packages/service/src/store/embedded/start.ts';
import { openFolderBlobs } from '../packages/service/src/store/folder-blobs.ts';
import { silentLog } from '../packages/service/src/store/log.ts';
import { median, report } from './report.ts';
import { timed } from './turns.ts';

const count = Number(process.env.BENCH_RUNS ?? 20_000);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const eventsOfRun = 20;
/** Runs ended evenly over so many days. */
const spanDays = 500;
const detailDays = 90;
const runDays = 400;
const older = (days: number) => Math.round(count * (1 - days / spanDays));

/** Runs that ended, each with an execution and a conversation. */
async function seed({ engine: { db }, teamId }: TestEngine): Promise<void> {
  await db.onOwnConnection(async (client) => {
    // Foreign keys hold by construction; checking them one by one takes longer than all the rest.
    await client.query(`SET session_replication_role = replica`);
    await client.query(
      `INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind,
         executor_uid, conversation_id, current_execution_id, event_seq, created_at, ended_at)
       SELECT id, $1, 'SUCCEEDED', 'Build', 'Look at the failing build.', 'runbook', 'oz', 'API', 'user', 'u', 'user', 'u', id, id, $4, at, at
       FROM (SELECT gen_random_uuid() AS id, now() - $3 * interval '1 day' * (n - 0.5) / $2::int AS at FROM generate_series(1, $2::int) n) r`,
      [teamId, count, spanDays, eventsOfRun],
    );
    await client.query(
      `INSERT INTO executions (id, run_id, team_id, number, phase, pool) SELECT id, id, team_id, 1, 'ended', '' FROM runs`,
    );
    await client.query(
      `INSERT INTO conversation_events (run_id, seq, execution_id, event)
       SELECT id, seq, id, jsonb_build_object('type', 'transcript', 'line', repeat('It fails in the linker. ', 10))
       FROM runs, generate_series(1, ${eventsOfRun}) seq`,
    );
    await client.query(`SET session_replication_role = DEFAULT`);
    await client.query('VACUUM ANALYZE');
  });
}

/** The sweep as it runs every night; 0 days: nothing of the kind is old. */
async function sweep({ db, log }: TestEngine['engine'], days: { detail: number; runs: number }): Promise<number> {
  const deps = {
    db,
    blobs: await openFolderBlobs(path.join(folder, 'blobs')),
    log,
    signal: new AbortController().signal,
    settings: { RUNYARD_RETENTION_RUN_DAYS: days.runs, RUNYARD_RETENTION_DETAIL_DAYS: days.detail },
  };
  // The first call only notes when the next one is due.
  await sweepWhenDue(deps);
  await db.query(`UPDATE sweeps SET next_at = now() - interval '1 minute'`);
  return await timed(async () => {
    const outcome = await sweepWhenDue(deps);
    if (outcome !== 'done') throw new Error(`the sweep is ${outcome}`);
  });
}

/** The same batches, each looking for old runs from the beginning. */
const fromTheBeginning = (db: Database, days: number, deleteBatch: typeof deleteOldRuns) =>
  timed(async () => {
    while ((await deleteBatch(db, days, start)).next !== null);
  });

type Times = Record<'detail' | 'runs' | 'nothing', number>;

async function onFreshDatabase(work: (engine: TestEngine['engine']) => Promise<Times>): Promise<Times> {
  const opened = await openTestEngine();
  const { db } = opened.engine;
  try {
    await seed(opened);
    const times = await work(opened.engine);
    const [left] = await db.query<{ runs: number; events: number }>(
      'SELECT (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM conversation_events) AS events',
    );
    if (left?.runs !== count - older(runDays) || left.events !== (count - older(detailDays)) * eventsOfRun)
      throw new Error(`not what should be left: ${JSON.stringify(left)}`);
    return times;
  } finally {
    await opened.close();
  }
}

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-retention-'));
const server = await startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), log: silentLog });
process.env.TEST_DATABASE_URL = server.url;
try {
  const results = { placed: [] as Times[], plain: [] as Times[] };
  for (let round = 0; round < rounds; round += 1) {
    results.placed.push(
      await onFreshDatabase(async (engine) => ({
        detail: await sweep(engine, { detail: detailDays, runs: 0 }),
        runs: await sweep(engine, { detail: 0, runs: runDays }),
        nothing: await sweep(engine, { detail: detailDays, runs: runDays }),
      })),
    );
    results.plain.push(
      await onFreshDatabase(async ({ db }) => ({
        detail: await fromTheBeginning(db, detailDays, deleteOldDetail),
        runs: await fromTheBeginning(db, runDays, deleteOldRuns),
        nothing: Number.NaN,
      })),
    );
  }
  const seconds = (list: readonly Times[], what: keyof Times) => {
    const sample = list.map((times) => times[what] / 1000);
    return Number.isNaN(sample[0]) ? ['', ''] : [median(sample).toFixed(2), Math.max(...sample).toFixed(2)];
  };
  const row = (name: string, what: keyof Times) => [
    name,
    ...seconds(results.placed, what),
    ...seconds(results.plain, what),
  ];
  report(
    'Retention',
    `${count.toLocaleString('en')} runs with ${eventsOfRun} events each, on the embedded PostgreSQL; ${rounds} rounds, each on fresh databases. Seconds.`,
    ['sweep', 'median', 'max', 'each batch from the beginning: median', 'max'],
    [
      row(
        `detail of ${older(detailDays).toLocaleString('en')} runs (${(older(detailDays) * eventsOfRun).toLocaleString('en')} events)`,
        'detail',
      ),
      row(`${older(runDays).toLocaleString('en')} runs`, 'runs'),
      row('nothing', 'nothing'),
    ],
  );
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
