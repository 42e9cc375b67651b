/** Tests service processes with different clocks that fire the schedules of one database. Kills some of the processes with SIGKILL. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newRawKey } from '../packages/service/src/team/access/keys/key.ts';
import { createTestDatabase, type TestDatabase } from '../packages/service/test/database.ts';
import { testSchedules } from '../packages/service/test/schedules.ts';
import type { TestService } from '../packages/service/test/service.ts';
import { type OneService, startService } from './support/service-process.ts';
import { eventually } from './support/system.ts';

let database: TestDatabase;
/** The running processes. A test may kill some of them; the next test uses the others. */
const services: OneService[] = [];
let teamId: string;
const key = newRawKey();
const minuteMs = 60_000;

beforeAll(async () => {
  database = await createTestDatabase();
  for (const clockAheadMs of [0, minuteMs, -minuteMs]) services.push(await start(clockAheadMs));
  const [team] = await database.db.query<{ id: string }>('SELECT id FROM teams');
  teamId = team?.id ?? '';
}, 180_000);
afterAll(async () => {
  await stopAll();
  await database.drop();
  rmSync(env.RUNYARD_BLOBS, { recursive: true, force: true });
});

/**
 * All services of the database use this secrets key and this folder of blobs, also a service that starts when all others have stopped.
 */
const env = {
  RUNYARD_SECRETS_KEY: randomBytes(32).toString('base64'),
  RUNYARD_BLOBS: mkdtempSync(path.join(tmpdir(), 'runyard-schedules-')),
};
const start = (clockAheadMs?: number) =>
  startService({ databaseUrl: database.url, key, env, ...(clockAheadMs === undefined ? {} : { clockAheadMs }) });
const stopAll = () => Promise.all(services.splice(0).map((service) => service.stop()));

const insert = (rows: Omit<Parameters<ReturnType<typeof testSchedules>['insert']>[0], 'teamId'>) =>
  testSchedules({ deps: { db: database.db } } as TestService).insert({ ...rows, teamId });

/**
 * Counts for these schedules: fires, runs, schedules with more than one run, and fires that came too early. `late_ms` is the longest
 * delay of a fire.
 */
async function countFires(ids: readonly string[]) {
  const [row] = await database.db.query<{ fires: number; runs: number; twice: number; early: number; late_ms: number }>(
    `SELECT count(*) AS fires, count(r.id) AS runs,
       (SELECT count(*) FROM (SELECT FROM runs WHERE schedule_id = ANY ($1) GROUP BY schedule_id HAVING count(*) > 1) x) AS twice,
       count(*) FILTER (WHERE f.fired_at < f.due_at OR r.created_at < f.due_at) AS early,
       coalesce(extract(epoch FROM max(f.fired_at - f.due_at)) * 1000, 0)::float8 AS late_ms
     FROM starts f LEFT JOIN runs r ON r.id = f.run_id AND r.schedule_id = f.schedule_id
     WHERE f.schedule_id = ANY ($1)`,
    [ids],
  );
  if (!row) throw new Error('no counts');
  return row;
}

const untilFired = (ids: readonly string[]) =>
  eventually('the fires of all schedules', async () => (await countFires(ids)).fires >= ids.length || null);

test('three processes whose clocks differ by a minute fire each due time exactly once and never early', async () => {
  const ids = await insert({ count: 300, dueSeconds: -3, spreadSeconds: 6 });
  await untilFired(ids);
  const { fires, runs, twice, early, late_ms } = await countFires(ids);
  expect({ fires, runs, twice, early }).toEqual({ fires: 300, runs: 300, twice: 0, early: 0 });
  // This limit is far above the goal of 2 s in bench/schedules.ts, because other tests may run on this machine at the same time.
  expect(late_ms).toBeLessThan(60_000);
  const pending = await database.db.query('SELECT FROM schedules WHERE id = ANY ($1) AND next_run_at <= now()', [ids]);
  expect(pending).toEqual([]);
});

test('other processes fire the unfinished schedules of killed processes, and fire no schedule twice', async () => {
  // Make all schedules due at one moment, so that the kills interrupt transactions that fire schedules.
  const ids = await insert({ count: 2_000, dueSeconds: -2 });
  for (let n = 0; n < 3; n += 1) {
    const before = (await countFires(ids)).fires;
    await eventually('some fires', async () => (await countFires(ids)).fires > before || before === ids.length || null);
    await services.shift()?.stop();
    if (n === 1) services.push(await start());
  }
  await untilFired(ids);
  // Insert one more schedule and wait until it has fired. By then, the processes have also read all earlier schedules again, and could
  // have fired one of them twice.
  await untilFired(await insert({ count: 1, dueSeconds: -2 }));
  const { fires, runs, twice, early } = await countFires(ids);
  expect({ fires, runs, twice, early }).toEqual({ fires: 2_000, runs: 2_000, twice: 0, early: 0 });
}, 180_000);

test('after its start, a service fires each schedule once for all the times that it has missed', async () => {
  await stopAll();
  const ids = await insert({ count: 20, dueSeconds: 3_600, everySeconds: 60 });
  services.push(await start());
  await untilFired(ids);
  const { fires, runs } = await countFires(ids);
  expect({ fires, runs }).toEqual({ fires: 20, runs: 20 });
  const [next] = await database.db.query<{ ok: boolean }>(
    `SELECT bool_and(next_run_at > last_due_at AND next_run_at <= now() + interval '61 s') AS ok FROM schedules WHERE id = ANY ($1)`,
    [ids],
  );
  expect(next?.ok).toBe(true);
});
