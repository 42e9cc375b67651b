/**
 * Measures the nightly sweep over many old runs, and how much time the sweep saves because each of its batches starts where the batch
 * before it ended.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { deleteOldDetail, deleteOldRuns, type Place, start } from '../packages/service/src/edges/retention/runs.ts';
import { sweepWhenDue } from '../packages/service/src/edges/retention/sweep.ts';
import { openFolderBlobs } from '../packages/service/src/platform/store/blobs/folder-blobs.ts';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { openTestExecutions, type TestExecutions } from '../packages/service/test/executions.ts';
import { registeredRetention } from '../packages/service/test/retention.ts';
import { report } from './report.ts';
import { timed } from './turns.ts';

const count = Number(process.env.BENCH_RUNS ?? 20_000);
const rounds = Number(process.env.BENCH_ROUNDS ?? 2);
const eventsOfRun = 20;
/** The runs ended at times that are spread evenly over this number of days. */
const spanDays = 500;
const detailDays = 90;
const runDays = 400;
const older = (days: number) => Math.round(count * (1 - days / spanDays));

/** Inserts ended runs, each with an execution and a conversation. */
async function seed({ deps: { db }, teamId }: TestExecutions): Promise<void> {
  await db.onOwnConnection(async (client) => {
    // Disable the checks of foreign keys, because they take longer than all other work. The rows are made with correct references.
    await client.query(`SET session_replication_role = replica`);
    await client.query(
      `INSERT INTO runs (id, team_id, state, title, model_id, harness, source, creator_kind, creator_uid, executor_kind,
         executor_uid, conversation_id, current_execution_id, event_seq, created_at, ended_at)
       SELECT id, $1, 'SUCCEEDED', 'Build', 'runbook', 'oz', 'API', 'user', 'u', 'user', 'u', id, id, $4, at, at
       FROM (SELECT gen_random_uuid() AS id, now() - $3 * interval '1 day' * (n - 0.5) / $2::int AS at FROM generate_series(1, $2::int) n) r`,
      [teamId, count, spanDays, eventsOfRun],
    );
    await client.query(`INSERT INTO run_requests (run_id, prompt) SELECT id, 'Look at the failing build.' FROM runs`);
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

/**
 * Runs the sweep that the service runs every night. Returns its duration in milliseconds. With `detail` or `runs` 0, the sweep deletes no
 * details or no runs.
 */
async function sweep({ db, log }: TestExecutions['deps'], days: { detail: number; runs: number }): Promise<number> {
  const deps = {
    db,
    blobs: await openFolderBlobs(path.join(folder, 'blobs')),
    log,
    signal: new AbortController().signal,
    registered: registeredRetention,
    settings: { RUNYARD_RETENTION_RUN_DAYS: days.runs, RUNYARD_RETENTION_DETAIL_DAYS: days.detail },
  };
  // The first call only records when the next sweep is due.
  await sweepWhenDue(deps);
  await db.query(`UPDATE sweeps SET next_at = now() - interval '1 minute'`);
  return await timed(async () => {
    const outcome = await sweepWhenDue(deps);
    if (outcome !== 'done') throw new Error(`the sweep is ${outcome}`);
  });
}

type DeleteBatch = (db: Database, days: number, from: Place) => ReturnType<typeof deleteOldRuns>;

/**
 * Runs the batches of a sweep on two databases in turns. On the database `behind`, each batch begins where the batch before it ended. On
 * the database `beginning`, each batch searches for old runs from the beginning. Returns the sum of the milliseconds of all batches,
 * for each database.
 */
async function compare(behind: Database, beginning: Database, days: number, deleteBatch: DeleteBatch) {
  const ms = { behind: 0, beginning: 0 };
  let from: Place | null = start;
  let more = true;
  while (from !== null || more) {
    const place: Place | null = from;
    if (place !== null)
      ms.behind += await timed(async () => {
        from = (await deleteBatch(behind, days, place)).next;
      });
    if (more)
      ms.beginning += await timed(async () => {
        more = (await deleteBatch(beginning, days, start)).next !== null;
      });
  }
  return ms;
}

const left = { runs: count - older(runDays), events: (count - older(detailDays)) * eventsOfRun };

/** Opens `many` databases with runs and calls `work` with them. Throws if `work` has not deleted exactly the old runs. */
async function onFreshDatabases(many: number, work: (all: TestExecutions['deps'][]) => Promise<void>): Promise<void> {
  const opened: TestExecutions[] = [];
  try {
    for (let n = 0; n < many; n += 1) opened.push(await openTestExecutions());
    for (const each of opened) await seed(each);
    await work(opened.map(({ deps }) => deps));
    for (const { deps } of opened) {
      const [found] = await deps.db.query(
        'SELECT (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM conversation_events) AS events',
      );
      if (JSON.stringify(found) !== JSON.stringify(left))
        throw new Error(`not what should be left: ${JSON.stringify(found)}`);
    }
  } finally {
    for (const each of opened) await each.close();
  }
}

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-retention-'));
const server = await startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), log: silentLog });
process.env.TEST_DATABASE_URL = server.url;
try {
  const samples = new Map<string, number[]>();
  const note = (what: string, ms: number) => samples.set(what, [...(samples.get(what) ?? []), ms / 1000]);
  for (let round = 0; round < rounds; round += 1) {
    await onFreshDatabases(3, async ([whole, one, other]) => {
      if (!whole || !one || !other) return;
      note('detail', await sweep(whole, { detail: detailDays, runs: 0 }));
      note('runs', await sweep(whole, { detail: 0, runs: runDays }));
      note('nothing', await sweep(whole, { detail: detailDays, runs: runDays }));
      const detail = await compare(one.db, other.db, detailDays, (db, days, from) =>
        deleteOldDetail(db, days, from, registeredRetention.runDetail),
      );
      const runs = await compare(one.db, other.db, runDays, (db, days, from) => deleteOldRuns(db, days, from, false));
      note('detail, behind', detail.behind);
      note('detail, beginning', detail.beginning);
      note('runs, behind', runs.behind);
      note('runs, beginning', runs.beginning);
    });
  }
  const figures = (what: string) => {
    const sample = samples.get(what) ?? [];
    return [Math.min(...sample).toFixed(2), Math.max(...sample).toFixed(2)];
  };
  const number = (value: number) => value.toLocaleString('en');
  const detail = `detail of ${number(older(detailDays))} runs (${number(older(detailDays) * eventsOfRun)} events)`;
  const runs = `${number(older(runDays))} runs`;
  report(
    'Retention',
    `${number(count)} runs with ${eventsOfRun} events each, on the embedded PostgreSQL; ${rounds} rounds, each on new databases. All times are in seconds. The rows about batches alone compare, in turns, two ways to find the old runs of a batch: each batch begins where the last batch ended, or each batch searches from the beginning.`,
    ['what', 'best', 'worst'],
    [
      [`sweep of the ${detail}`, ...figures('detail')],
      [`sweep of ${runs}`, ...figures('runs')],
      ['sweep that finds nothing', ...figures('nothing')],
      [`${detail}, batches alone`, ...figures('detail, behind')],
      ['… each from the beginning', ...figures('detail, beginning')],
      [`${runs}, batches alone`, ...figures('runs, behind')],
      ['… each from the beginning', ...figures('runs, beginning')],
    ],
  );
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
