/**
 * Measures how long it takes to assign the next waiting execution to a worker, with few and many waiting executions, in one team and in
 * many teams.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { assignNext, type OneSlot } from '../packages/service/test/assign-next.ts';
import { insertTeam, openTestExecutions } from '../packages/service/test/executions.ts';
import { copyRuns } from './copied-runs.ts';
import { report } from './report.ts';
import { inTurns, spread, spreadColumns } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 200);
/**
 * Number of ended runs. Because of these runs, the waiting executions are only a small part of the table, as in a database that has been
 * in use for a long time.
 */
const ended = 20_000;
const limit = 100;

interface Queue {
  readonly name: string;
  readonly waiting: number;
  /** Number of teams. Each team has an equal share of the waiting executions. */
  readonly teams: number;
  /**
   * Number of teams that already have as many running executions as their limit allows. These teams have waited longest for an
   * assignment.
   */
  readonly full: number;
  /** Number of pools. Each pool has an equal share of the waiting executions; only assignments of the first pool are measured. */
  readonly pools: number;
  /**
   * Number of assignments before the measured assignments. PostgreSQL cannot remove the dead rows that they leave while an older
   * transaction is open.
   */
  readonly earlier?: number;
  /** True: a transaction, like the transaction of an export or of pg_dump, began before the `earlier` assignments and stays open. */
  readonly isRead?: true;
}

const queues: readonly Queue[] = [
  { name: '100 waiting', waiting: 100, teams: 1, full: 0, pools: 1 },
  { name: '3,000 waiting', waiting: 3_000, teams: 1, full: 0, pools: 1 },
  { name: '3,000 waiting, after 4,000 assignments', waiting: 3_000, teams: 1, full: 0, pools: 1, earlier: 4_000 },
  {
    name: '3,000 waiting, after 4,000 assignments during an export',
    waiting: 3_000,
    teams: 1,
    full: 0,
    pools: 1,
    earlier: 4_000,
    isRead: true,
  },
  { name: '50,000 waiting', waiting: 50_000, teams: 1, full: 0, pools: 1 },
  {
    name: '50,000 waiting, 100 teams, 20 of them at their limit, 5 pools',
    waiting: 50_000,
    teams: 100,
    full: 20,
    pools: 5,
  },
  { name: '1,000 waiting, 1,000 teams', waiting: 1_000, teams: 1_000, full: 0, pools: 1 },
];

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-assign-'));
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
process.env.TEST_DATABASE_URL = server.url;
const opened: Awaited<ReturnType<typeof openQueue>>[] = [];
try {
  for (const queue of queues) opened.push(await openQueue(queue));
  const samples = await inTurns(Object.fromEntries(opened.map(({ name, assignOne }) => [name, assignOne])), rounds, 20);
  report(
    'Assignment of waiting executions',
    `Each row is the time, in milliseconds, of the statement that assigns the next waiting execution to a free slot of a worker. Each queue is in a separate database on the embedded PostgreSQL, with ${ended} runs that have ended. ${rounds} rounds in turns. Before the next round, the assigned execution ends, and a new execution is added to the queue.`,
    ['queue', ...spreadColumns],
    Object.entries(samples).map(([name, sample]) => [name, ...spread(sample, 2)]),
  );
} finally {
  for (const { close } of opened) await close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Opens a database with this queue. `assignOne` assigns one execution and returns the milliseconds that this takes. */
async function openQueue({ name, waiting, teams: teamCount, full, pools, earlier = 0, isRead }: Queue) {
  const test = await openTestExecutions({ limit });
  const { db } = test.deps;
  const teams = [test.teamId];
  while (teams.length < teamCount) teams.push(await insertTeam(test.database, limit));
  const first = await test.newRun();
  await db.query(`WITH ended AS (UPDATE runs SET state = 'SUCCEEDED') UPDATE executions SET phase = 'ended'`);
  const connectionId = await test.newConnection();

  const poolNames = ['', ...Array.from({ length: pools - 1 }, (_, n) => `pool-${n + 1}`)];
  const add = (count: number, state: string, phase: string, ofTeams: readonly string[] = teams) =>
    copyRuns(db, first, { count, state, phase, teams: ofTeams, pools: poolNames });
  await add(ended, 'SUCCEEDED', 'ended');
  await add(waiting, 'QUEUED', 'queued');
  if (full > 0) await add(limit * full, 'INPROGRESS', 'running', teams.slice(0, full));
  // Make the teams at their limit those that have waited longest for an assignment, so that each assignment reads these teams first.
  await db.query(`UPDATE teams SET served_at = clock_timestamp() WHERE NOT id = ANY($1::uuid[])`, [
    teams.slice(0, full),
  ]);
  await db.query('ANALYZE');

  const slot: OneSlot = { connectionId, workerId: 'runyard-bench', workerInstance: 'i', pool: '', teamId: null };
  const assignOne = async () => {
    const started = performance.now();
    const assignment = await assignNext(test.deps, slot);
    const took = performance.now() - started;
    if (typeof assignment === 'string') throw new Error(`an assignment gave '${assignment}'`);
    const [ofTeam] = await db.query<{ team_id: string }>(
      `WITH run AS (UPDATE runs SET state = 'SUCCEEDED' WHERE id = $1)
       UPDATE executions SET phase = 'ended' WHERE id = $2 RETURNING team_id`,
      [assignment.runId, assignment.executionId],
    );
    if (ofTeam) await add(1, 'QUEUED', 'queued', [ofTeam.team_id]);
    return took;
  };
  const reader = isRead && new pg.Client({ connectionString: test.database.url });
  await reader?.connect();
  await reader?.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM runs');
  for (let count = 0; count < earlier; count += 1) await assignOne();
  const close = async () => {
    await reader?.end();
    await test.close();
  };
  return { name, assignOne, close };
}
