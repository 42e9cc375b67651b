import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openTestSweeps } from '../../../test/sweeps.ts';
import { openRunFeeds } from '../live/run-feeds.ts';

const sweeps = await openTestSweeps();
const { db, sweep, night, put, isThere, isRow, endedRun, manyOldRuns, eventsOf } = sweeps;

describe('the sweep of runs', () => {
  test('deletes the conversation and transcript of a run after the number of days that is set for details, and keeps the other data of the run', async () => {
    const [old, young] = [await endedRun(91), await endedRun(89)];
    expect(await sweep()).toBe('done');
    expect([await eventsOf(old.id), await eventsOf(young.id)]).toEqual([0, 4]);
    expect([await isThere(old.transcriptKey), await isThere(young.transcriptKey)]).toEqual([false, true]);
    expect([await isRow('runs', old.id), await isThere(old.attachmentKey)]).toEqual([true, true]);
    const [execution] = await db.query('SELECT transcript_blob, transcript_bytes FROM executions WHERE run_id = $1', [
      old.id,
    ]);
    expect(execution).toEqual({ transcript_blob: null, transcript_bytes: 0 });
  });

  test('ends the live stream of a run whose detail was deleted', async () => {
    const { id } = await endedRun(91);
    await sweep();
    const feeds = openRunFeeds(sweeps.test.deps);
    const seen: string[] = [];
    const ended = new Promise<void>((end) => {
      const outlet = { write: (bytes: Buffer) => seen.push(String(bytes)) > 0, end, cut: end };
      feeds.open({ runId: id, position: 0, floor: 10, lastSeq: 5 }, outlet);
    });
    await ended;
    expect(seen.join('')).toContain('oz_run_created');
    feeds.stop();
  });

  test('deletes the details of old runs in batches and marks a run only after its last batch', async () => {
    const { id } = await endedRun(91);
    await db.query(
      `INSERT INTO conversation_events (run_id, seq, execution_id, event) SELECT $1, n, $1, '{}' FROM generate_series(6, 12000) AS n`,
      [id],
    );
    const deletes: number[] = [];
    const counting = new Proxy(db, {
      get: (target, name) =>
        name === 'transaction'
          ? async (work: Parameters<typeof target.transaction>[0]) => {
              const before = await eventsOf(id);
              const result = await target.transaction(work);
              deletes.push(before - (await eventsOf(id)));
              return result;
            }
          : Reflect.get(target, name),
    });
    await sweep({ db: counting });
    expect(await eventsOf(id)).toBe(0);
    expect(Math.max(...deletes)).toBe(10_000);
  });

  test('records the highest number up to which events of the run may be missing', async () => {
    const [old, young] = [await endedRun(91), await endedRun(89)];
    await db.query('UPDATE runs SET event_seq = 6 WHERE id = $1', [old.id]);
    await sweep();
    const keptAfter = async (id: string) =>
      (await db.query('SELECT events_kept_after FROM runs WHERE id = $1', [id]))[0]?.events_kept_after;
    expect([await keptAfter(old.id), await keptAfter(young.id)]).toEqual([5, 0]);
  });

  test('also deletes details that a run stored after its first details were deleted and the run was continued', async () => {
    const { id } = await endedRun(91);
    await sweep();
    await db.query(`INSERT INTO conversation_events (run_id, seq, execution_id, event) VALUES ($1, 6, $1, '{}')`, [id]);
    await db.query(
      `UPDATE runs SET ended_at = now() - interval '91 days', detail_deleted_at = now() - interval '92 days' WHERE id = $1`,
      [id],
    );
    await night();
    await sweep();
    expect(await eventsOf(id)).toBe(0);
  });

  test('deletes delivered follow-ups with their files, and keeps waiting follow-ups', async () => {
    const { id: runId } = await endedRun(91);
    const add = async (execution: string | null) => {
      const [followup, attachment] = [randomUUIDv7(), randomUUIDv7()];
      const key = await put(`attachments/${attachment}`);
      await db.query(
        `INSERT INTO followups (id, run_id, message, created_by_kind, created_by_uid, execution_id, taken_at)
         VALUES ($1, $2, 'a', 'user', 'u', $3, CASE WHEN $3::uuid IS NOT NULL THEN now() END)`,
        [followup, runId, execution],
      );
      await db.query(
        `INSERT INTO attachments (id, run_id, followup_id, position, file_name, mime_type, size_bytes, sha256, blob_key)
         VALUES ($1, $2, $3, 0, 'a', 'a/b', 1, '', $4)`,
        [attachment, runId, followup, key],
      );
      return { followup, attachment, key };
    };
    const [played, waiting] = [await add(randomUUIDv7()), await add(null)];
    await sweep();
    const left = async ({ followup, attachment, key }: typeof played) => [
      await isRow('followups', followup),
      await isRow('attachments', attachment),
      await isThere(key),
    ];
    expect([await left(played), await left(waiting)]).toEqual([
      [false, false, false],
      [true, true, true],
    ]);
  });

  test('deletes runs with their rows and blobs after the number of days that is set for runs, and keeps their child runs', async () => {
    const old = await endedRun(401);
    const child = await endedRun(1, { parentRunId: old.id, ancestorIds: [old.id] });
    await sweep();
    expect(await isRow('runs', old.id)).toBe(false);
    expect([await isThere(old.attachmentKey), await isThere(old.transcriptKey)]).toEqual([false, false]);
    expect([await isRow('runs', child.id), await isThere(child.attachmentKey)]).toEqual([true, true]);
  });

  test('deletes more runs than fit in a batch', async () => {
    const ids = await manyOldRuns();
    await sweep();
    expect(await db.query('SELECT id FROM runs WHERE id = ANY($1::uuid[])', [ids])).toEqual([]);
  });

  test('keeps runs that have not ended, that have a sandbox, or whose conversation another run has continued recently', async () => {
    const conversationId = randomUUIDv7();
    const continued = await endedRun(500, { conversationId });
    const continuing = await endedRun(10, { conversationId });
    const alive = await endedRun(500);
    await db.query(`UPDATE executions SET phase = 'stopping' WHERE run_id = $1`, [alive.id]);
    const waiting = await sweeps.test.newRun();
    await db.query(`UPDATE runs SET created_at = now() - interval '500 days' WHERE id = $1`, [waiting]);
    await sweep();
    for (const id of [continued.id, continuing.id, alive.id, waiting]) expect(await isRow('runs', id)).toBe(true);
    expect([await eventsOf(continued.id), await eventsOf(alive.id)]).toEqual([4, 4]);
  });

  test('never deletes a run if the setting is 0 days', async () => {
    const old = await endedRun(10_000);
    await sweep({ settings: { RUNYARD_RETENTION_RUN_DAYS: 0, RUNYARD_RETENTION_DETAIL_DAYS: 0 } });
    expect([await isRow('runs', old.id), await eventsOf(old.id)]).toEqual([true, 4]);
  });
});
