import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../test/executions.ts';
import { ensureEpoch } from './epoch.ts';

let t: TestExecutions;
beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
});

const numbers = async () => {
  const rows = await t.deps.db.query<{ xact: number }>(
    'SELECT e.xact::text::bigint AS xact FROM run_events e JOIN runs r ON r.id = e.run_id ORDER BY r.created_at',
  );
  return rows.map(({ xact }) => xact);
};

test('every process gets the same epoch', async () => {
  const epochs = await Promise.all(Array.from({ length: 5 }, () => ensureEpoch(t.deps.db)));
  await t.newRun();
  expect(new Set([...epochs, await ensureEpoch(t.deps.db)]).size).toBe(1);
  expect((await numbers())[0]).toBeGreaterThan(0);
});

test('a copy in another database or cluster gets its own epoch', async () => {
  const before = await ensureEpoch(t.deps.db);
  await t.deps.db.query(`UPDATE event_stream_epoch SET identity = '7/5/00000001'`);
  await t.deps.db.query(`INSERT INTO event_stream_marks (xact) VALUES ('7')`);
  const after = await ensureEpoch(t.deps.db);
  expect(after).not.toBe(before);
  expect(after).toMatch(/^[0-9a-f]{16}$/);
  expect(await t.deps.db.query('SELECT FROM event_stream_marks')).toEqual([]);
});

test('a new epoch removes transaction numbers that the copy has not assigned yet', async () => {
  const before = await ensureEpoch(t.deps.db);
  await t.newRun();
  const young = await t.newRun();
  const [first] = await numbers();
  await t.deps.db.query(`UPDATE run_events SET xact = (xact::text::bigint + 1000000)::text::xid8 WHERE run_id = $1`, [
    young,
  ]);
  expect(await ensureEpoch(t.deps.db)).not.toBe(before);
  expect(await numbers()).toEqual([first, 0]);
});
