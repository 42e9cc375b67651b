import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { registeredRetention } from '../../../test/retention.ts';
import { openTestSweeps } from '../../../test/sweeps.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import { claimSweep } from './claim.ts';

const sweeps = await openTestSweeps();
const { db, blobs, sweep, isRow, endedRun, manyOldRuns } = sweeps;

describe('the sweep', () => {
  test('is done by one of several processes once a night', async () => {
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => sweep()));
    expect(outcomes.sort()).toEqual(['done', 'not_due', 'not_due', 'not_due', 'not_due']);
    expect(await sweep()).toBe('not_due');
    const [row] = await db.query<Record<string, unknown>>(
      `SELECT next_at > now() AND next_at <= now() + interval '24 hours' AS soon,
         extract(hour FROM next_at AT TIME ZONE 'UTC')::int AS hour, claimed_by, result FROM sweeps`,
    );
    expect(row).toMatchObject({ soon: true, hour: 3, claimed_by: null, result: { runs: expect.any(Number) } });
  });

  test('is taken over when the claim of a dead process has expired, and the dead process cannot continue', async () => {
    const died = await claimSweep(db, 'retention', randomUUIDv7());
    expect(await sweep()).toBe('not_due');
    await db.query(`UPDATE sweeps SET claimed_until = now() - interval '1 second'`);
    expect(await sweep()).toBe('done');
    expect(await died?.renew()).toBe(false);
    await died?.release(0);
    expect(await sweep()).toBe('not_due');
  });

  test('stops between two batches when its process ends, and another process continues', async () => {
    await endedRun(501);
    const last = (await manyOldRuns()).at(-1) ?? '';
    const ending = new AbortController();
    const stopping: BlobStore = {
      ...blobs,
      delete: async (key) => {
        ending.abort();
        await blobs.delete(key);
      },
    };
    expect(await sweep({ blobs: stopping, signal: ending.signal })).toBe('stopped');
    expect(await sweep({ signal: ending.signal })).toBe('stopped');
    expect(await isRow('runs', last)).toBe(true);
    expect(await sweep()).toBe('done');
    expect(await isRow('runs', last)).toBe(false);
  });

  test('reports a failure and tries again later', async () => {
    await endedRun(500);
    const broken: BlobStore = { ...blobs, delete: () => Promise.reject(new Error('the disk is read-only')) };
    await expect(sweep({ blobs: broken })).rejects.toThrow('read-only');
    expect(await sweep()).toBe('not_due');
    const [row] = await db.query(`SELECT next_at < now() + interval '16 minutes' AS soon, claimed_by FROM sweeps`);
    expect(row).toEqual({ soon: true, claimed_by: null });
  });

  test('does all other parts if one part fails', async () => {
    const run = await endedRun(500);
    const rows = [{ table: 'no_such_table', isOver: 'true' }, ...registeredRetention.rows];
    await expect(sweep({ registered: { ...registeredRetention, rows } })).rejects.toThrow('no_such_table');
    expect(await isRow('runs', run.id)).toBe(false);
  });
});

test('deletes idempotency keys after 24 hours, abandoned uploads after a day and rows of dead service processes after an hour', async () => {
  const key = (age: string) =>
    db.query(
      `INSERT INTO idempotency_keys (team_id, principal, key, request_hash, status, response, created_at)
       VALUES ($1, 'p', $2::text, '', 200, '{}', now() - ($2::text)::interval)`,
      [sweeps.test.teamId, age],
    );
  await key('25 hours');
  await key('23 hours');
  const run = await endedRun(1);
  const artifact = async (age: string, isReady: boolean) => {
    const id = randomUUIDv7();
    await db.query(
      `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready, created_at)
       VALUES ($1, $2, $3, $1, $1, 'FILE', '{}', $4, now() - $5::interval)`,
      [id, sweeps.test.teamId, run.id, isReady, age],
    );
    return id;
  };
  const artifacts = [
    await artifact('25 hours', false),
    await artifact('23 hours', false),
    await artifact('25 hours', true),
  ];
  const [dead, alive] = [randomUUIDv7(), randomUUIDv7()];
  await db.query(
    `INSERT INTO service_instances (id, seen_at) VALUES ($1, now() - interval '61 minutes'), ($2, now() - interval '59 minutes')`,
    [dead, alive],
  );
  await sweep();
  expect(await db.query('SELECT key FROM idempotency_keys')).toEqual([{ key: '23 hours' }]);
  expect(await Promise.all(artifacts.map((id) => isRow('artifacts', id)))).toEqual([false, true, true]);
  expect([await isRow('service_instances', dead), await isRow('service_instances', alive)]).toEqual([false, true]);
});

test('marks the current transaction each night and keeps the marks for 30 days', async () => {
  await db.query('DELETE FROM event_stream_marks');
  await db.query(
    `INSERT INTO event_stream_marks VALUES (now() - interval '31 days', '1'), (now() - interval '8 days', '2')`,
  );
  await sweep();
  const marks = await db.query('SELECT xact::text::bigint AS xact FROM event_stream_marks ORDER BY marked_at');
  expect(marks).toEqual([{ xact: 2 }, { xact: expect.any(Number) }]);
});
