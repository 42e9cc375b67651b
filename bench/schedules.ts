/** Measures how late schedules fire with three service processes on the embedded PostgreSQL. */
import { randomUUIDv7 } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { newRawKey } from '../packages/service/src/team/access/keys/key.ts';
import { newUid } from '../packages/service/src/team/access/teams/uid.ts';
import { testSchedules } from '../packages/service/test/schedules.ts';
import type { TestService } from '../packages/service/test/service.ts';
import { startService } from '../test/support/service-process.ts';
import { eventually } from '../test/support/system.ts';
import { percentile, report } from './report.ts';

const count = Number(process.env.BENCH_SCHEDULES ?? 10_000);
const teams = 20;
const processes = 3;

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-schedules-'));
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
const key = newRawKey();
const services = [await startService({ databaseUrl: server.url, key })];
const db = await openDatabase({ address: server.connection, maxConnections: 4, log: silentLog });
try {
  while (services.length < processes) services.push(await startService({ databaseUrl: server.url, key }));
  const { insert } = testSchedules({ deps: { db } } as TestService);
  const teamIds: string[] = [];
  for (let n = 0; n < teams; n += 1) {
    const team = randomUUIDv7();
    await db.query(`INSERT INTO teams (id, uid, name) VALUES ($1, $2, 'Bench')`, [team, newUid()]);
    await db.query('INSERT INTO team_members SELECT $1, user_id, role FROM team_members LIMIT 1', [team]);
    teamIds.push(team);
  }

  /**
   * Creates schedules and waits until all have fired. Returns by how many milliseconds each fire was late, and the numbers of double and
   * missing fires.
   */
  const measure = async (spreadSeconds: number) => {
    const ids: string[] = [];
    // Set the planned times so late that all schedules exist before the first schedule is due.
    for (const [n, teamId] of teamIds.entries()) {
      const dueSeconds = -20 + n * 0.01;
      ids.push(...(await insert({ teamId, count: count / teams, dueSeconds, spreadSeconds })));
    }
    const fired = () =>
      db.query<{ late: number; runs: number }>(
        `SELECT extract(epoch FROM f.fired_at - f.due_at)::float8 * 1000 AS late,
           (SELECT count(*) FROM runs r WHERE r.schedule_id = f.schedule_id) AS runs
         FROM starts f WHERE f.schedule_id = ANY ($1) AND f.outcome = 'started'`,
        [ids],
      );
    const isDone = async () => {
      // Poll rarely, so that the query costs almost no time.
      await delay(2_000);
      const [row] = await db.query<{ due: number }>(
        'SELECT count(*) AS due FROM schedules WHERE id = ANY ($1) AND last_due_at IS NULL',
        [ids],
      );
      return row?.due === 0 || null;
    };
    await eventually('the fires of all schedules', isDone, 180_000);
    const fires = await fired();
    const double = fires.filter(({ runs }) => runs > 1).length;
    const late = fires.map(({ late }) => late);
    return { late, double, missed: count - fires.length };
  };
  const row = (name: string, { late, double, missed }: Awaited<ReturnType<typeof measure>>) => [
    name,
    ...[0.5, 0.99, 1].map((share) => percentile(late, share).toFixed(0)),
    double,
    missed,
  ];
  const spread = await measure(60);
  const together = await measure(0);
  report(
    'Lateness of schedules',
    `${count} schedules of ${teams} teams, ${processes} service processes and the embedded PostgreSQL, all on the same cores. The times in the table are how late a schedule fires: from its planned time to the row of the fire, by the database's clock. Goal if the planned times of all schedules are within one minute: p99 below 2,000 ms, and no schedule fires twice or never. Result: p99 **${percentile(spread.late, 0.99).toFixed(0)} ms**.`,
    ['times', 'p50 ms', 'p99 ms', 'max ms', 'double', 'missed'],
    [row('spread over one minute', spread), row('all at one moment', together)],
  );
} finally {
  await Promise.all(services.map((service) => service.stop()));
  await db.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
