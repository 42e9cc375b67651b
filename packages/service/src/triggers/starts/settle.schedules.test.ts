import { beforeEach, expect, test } from 'vitest';
import { deleteRows } from '../../../test/retention.ts';
import { testSchedules } from '../../../test/schedules.ts';
import { openTestService } from '../../../test/service.ts';
import { oldStarts } from '../history/write.ts';
import { cancelReplaced } from './replace.ts';
import { startWaiting } from './settle.ts';
import { fireDueSchedules } from './times/fire.ts';

const service = await openTestService();
const { deps, teamId } = service;
const { db } = deps;
const { insert } = testSchedules(service);
beforeEach(() => db.query('DELETE FROM schedules'));

/** Inserts schedules with this overlap policy. They are not due. */
async function withPolicy(overlap: string, count: number): Promise<string[]> {
  const ids = await insert({ teamId, count, dueSeconds: -3600 });
  await db.query('UPDATE schedules SET overlap = $2 WHERE id = ANY ($1::uuid[])', [ids, overlap]);
  return ids;
}

test('a hundred schedules whose waiting fires cannot create runs do not delay another schedule', async () => {
  const bad = await withPolicy('queue', 120);
  const good = await withPolicy('queue', 1);
  // The API never stores this value. The value makes the code that creates the run throw.
  await db.query(`UPDATE schedules SET agent_config = '{"mcp_servers": {"a": null}}' WHERE id = ANY ($1::uuid[])`, [
    bad,
  ]);
  await db.query('UPDATE schedules SET last_ran_at = now() WHERE id = $1', good);
  await db.query(
    `INSERT INTO starts (schedule_id, due_at, outcome, reason) SELECT id, now(), 'waiting', 'waits' FROM schedules`,
  );
  await startWaiting(deps);
  expect(await db.query('SELECT outcome FROM starts WHERE schedule_id = $1', good)).toEqual([{ outcome: 'started' }]);
});

test('a hundred schedules whose runs are PENDING do not delay the cancelling of other runs', async () => {
  const pending = await withPolicy('cancel_previous', 200);
  const queued = await withPolicy('cancel_previous', 10);
  for (let n = 0; n < 2; n += 1) {
    await db.query(`UPDATE schedules SET next_run_at = date_trunc('milliseconds', now()) - interval '1 second'`);
    while ((await fireDueSchedules(deps)) > 0);
  }
  await db.query(`UPDATE runs SET state = 'PENDING' WHERE schedule_id = ANY ($1::uuid[])`, [pending]);
  await cancelReplaced(deps);
  const [cancelled] = await db.query(
    `SELECT count(*)::int AS count FROM runs WHERE schedule_id = ANY ($1::uuid[]) AND state = 'CANCELLED'`,
    [queued],
  );
  expect(cancelled).toEqual({ count: 10 });
});

test('deleting the old history of schedules keeps fires that still wait', async () => {
  const ids = await withPolicy('queue', 1);
  await db.query(
    `INSERT INTO starts (id, schedule_id, due_at, outcome, reason)
     SELECT new_id::uuid, $1, due_at::timestamptz, outcome, 'waits'
     FROM (VALUES ('00000000-0000-7000-8000-000000000001', '2020-01-01Z', 'skipped'),
       ('00000000-0000-7000-8000-000000000002', '2020-01-02Z', 'waiting')) AS old (new_id, due_at, outcome)`,
    ids,
  );
  await deleteRows(db, oldStarts);
  await startWaiting(deps);
  expect(await db.query('SELECT outcome FROM starts WHERE schedule_id = $1', ids)).toEqual([{ outcome: 'started' }]);
});
