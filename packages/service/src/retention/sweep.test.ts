import { randomUUIDv7 } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import pino from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openRunFeeds } from '../live/run-feeds.ts';
import type { NewRun } from '../runs/create.ts';
import { openTestEngine, type TestEngine } from '../runs/test-engine.ts';
import type { BlobStore } from '../store/blobs.ts';
import { openFolderBlobs } from '../store/folder-blobs.ts';
import { graceMs } from './blobs.ts';
import { claimSweep } from './claim.ts';
import { type SweepDeps, sweepWhenDue } from './sweep.ts';

let engine: TestEngine;
let folder: string;
let blobs: BlobStore;
const logged: string[] = [];
beforeAll(async () => {
  engine = await openTestEngine();
  folder = await mkdtemp(path.join(tmpdir(), 'runyard-retention-'));
  blobs = await openFolderBlobs(folder);
});
afterAll(async () => {
  await engine.close();
  await rm(folder, { recursive: true, force: true });
});

const db = () => engine.database.db;
const settings = { RUNYARD_RETENTION_RUN_DAYS: 400, RUNYARD_RETENTION_DETAIL_DAYS: 90 };
const sweep = (more: Partial<SweepDeps> = {}) =>
  sweepWhenDue({
    db: db(),
    blobs,
    settings,
    log: pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) }),
    signal: new AbortController().signal,
    ...more,
  });

/** Makes the sweep due. */
const night = () => db().query(`UPDATE sweeps SET next_at = now() - interval '1 minute'`);
beforeEach(async () => {
  logged.length = 0;
  await sweep();
  await night();
});

const put = async (key: string) => {
  await blobs.put(key, Readable.from([Buffer.from('x')]), { maxBytes: 10 });
  return key;
};
const isThere = async (key: string) => (await blobs.stat(key)) !== undefined;
const isRow = async (table: string, id: string) =>
  (await db().query(`SELECT FROM ${table} WHERE id = $1`, [id])).length > 0;

/** A run with events, an attachment and a transcript, that ended so many days ago. */
async function endedRun(daysAgo: number, more: Partial<NewRun> = {}) {
  const attachment = randomUUIDv7();
  const attachmentKey = await put(`attachments/${attachment}`);
  const id = await engine.newRun({
    attachments: [
      {
        id: attachment,
        fileName: 'a',
        mimeType: 'a/b',
        sizeBytes: 1,
        sha256: Buffer.alloc(32),
        blobKey: attachmentKey,
      },
    ],
    ...more,
  });
  const transcriptKey = await put(`transcripts/${id}/${randomUUIDv7()}`);
  await db().query(
    `UPDATE executions SET phase = 'ended', transcript_bytes = 1, transcript_blob = $2 WHERE run_id = $1`,
    [id, transcriptKey],
  );
  await db().query(
    `INSERT INTO conversation_events (run_id, seq, execution_id, event)
     SELECT $1, n, $1, '{"type":"transcript","line":"{}"}' FROM generate_series(2, 5) AS n`,
    [id],
  );
  await db().query(
    `UPDATE runs SET state = 'SUCCEEDED', event_seq = 5, ended_at = now() - make_interval(days => $2) WHERE id = $1`,
    [id, daysAgo],
  );
  return { id, attachmentKey, transcriptKey };
}
/** More runs than go in one batch, that ended one after the other; gives their ids. */
async function manyOldRuns(): Promise<string[]> {
  const ids = Array.from({ length: 105 }, randomUUIDv7);
  await db().query(
    `INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind,
       executor_uid, conversation_id, current_execution_id, ended_at)
     SELECT id, $2, 'SUCCEEDED', '', '', 'runbook', 'oz', 'API', 'user', 'u', 'user', 'u', id, id,
       now() - interval '500 days' + place * interval '1 second'
     FROM unnest($1::uuid[]) WITH ORDINALITY AS old(id, place)`,
    [ids, engine.teamId],
  );
  return ids;
}
const eventsOf = async (runId: string) =>
  (await db().query('SELECT FROM conversation_events WHERE run_id = $1', [runId])).length;

describe('runs', () => {
  test('lose conversation and transcript after the days for detail, and keep the rest', async () => {
    const [old, young] = [await endedRun(91), await endedRun(89)];
    expect(await sweep()).toBe('done');
    expect([await eventsOf(old.id), await eventsOf(young.id)]).toEqual([0, 4]);
    expect([await isThere(old.transcriptKey), await isThere(young.transcriptKey)]).toEqual([false, true]);
    expect([await isRow('runs', old.id), await isThere(old.attachmentKey)]).toEqual([true, true]);
    const [execution] = await db().query('SELECT transcript_blob, transcript_bytes FROM executions WHERE run_id = $1', [
      old.id,
    ]);
    expect(execution).toEqual({ transcript_blob: null, transcript_bytes: 0 });
  });

  test('without their detail are still followed to their end, not for ever', async () => {
    const { id } = await endedRun(91);
    await sweep();
    const feeds = openRunFeeds(engine.engine);
    const seen: string[] = [];
    const ended = new Promise<void>((end) => {
      const outlet = { write: (bytes: Buffer) => seen.push(String(bytes)) > 0, end, cut: end };
      feeds.open({ runId: id, position: 0, floor: 10, lastSeq: 5 }, '', outlet);
    });
    await ended;
    expect(seen.join('')).toContain('oz_run_created');
    feeds.stop();
  });

  test('lose it in bounded batches, and are marked only when all of it is gone', async () => {
    const { id } = await endedRun(91);
    await db().query(
      `INSERT INTO conversation_events (run_id, seq, execution_id, event) SELECT $1, n, $1, '{}' FROM generate_series(6, 12000) AS n`,
      [id],
    );
    const deletes: number[] = [];
    const counting = new Proxy(db(), {
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

  test('say up to where their events may be missing', async () => {
    const [old, young] = [await endedRun(91), await endedRun(89)];
    await db().query('UPDATE runs SET event_seq = 6 WHERE id = $1', [old.id]);
    await sweep();
    const keptAfter = async (id: string) =>
      (await db().query('SELECT events_kept_after FROM runs WHERE id = $1', [id]))[0]?.events_kept_after;
    expect([await keptAfter(old.id), await keptAfter(young.id)]).toEqual([5, 0]);
  });

  test('lose again what was said since, where they were continued', async () => {
    const { id } = await endedRun(91);
    await sweep();
    await db().query(`INSERT INTO conversation_events (run_id, seq, execution_id, event) VALUES ($1, 6, $1, '{}')`, [
      id,
    ]);
    await db().query(
      `UPDATE runs SET ended_at = now() - interval '91 days', detail_deleted_at = now() - interval '92 days' WHERE id = $1`,
      [id],
    );
    await night();
    await sweep();
    expect(await eventsOf(id)).toBe(0);
  });

  test('are deleted after the days for runs with rows and blobs; what they started stays', async () => {
    const old = await endedRun(401);
    const child = await endedRun(1, { parentRunId: old.id, ancestorIds: [old.id] });
    await sweep();
    expect(await isRow('runs', old.id)).toBe(false);
    expect([await isThere(old.attachmentKey), await isThere(old.transcriptKey)]).toEqual([false, false]);
    expect([await isRow('runs', child.id), await isThere(child.attachmentKey)]).toEqual([true, true]);
  });

  test('of which there are more than a batch are all deleted', async () => {
    const ids = await manyOldRuns();
    await sweep();
    expect(await db().query('SELECT id FROM runs WHERE id = ANY($1::uuid[])', [ids])).toEqual([]);
  });

  test('stay while their conversation goes on, their sandbox lives, or they have not ended', async () => {
    const conversationId = randomUUIDv7();
    const continued = await endedRun(500, { conversationId });
    const continuing = await endedRun(10, { conversationId });
    const alive = await endedRun(500);
    await db().query(`UPDATE executions SET phase = 'stopping' WHERE run_id = $1`, [alive.id]);
    const waiting = await engine.newRun();
    await db().query(`UPDATE runs SET created_at = now() - interval '500 days' WHERE id = $1`, [waiting]);
    await sweep();
    for (const id of [continued.id, continuing.id, alive.id, waiting]) expect(await isRow('runs', id)).toBe(true);
    expect([await eventsOf(continued.id), await eventsOf(alive.id)]).toEqual([4, 4]);
  });

  test('are kept for ever with 0 days', async () => {
    const old = await endedRun(10_000);
    await sweep({ settings: { RUNYARD_RETENTION_RUN_DAYS: 0, RUNYARD_RETENTION_DETAIL_DAYS: 0 } });
    expect([await isRow('runs', old.id), await eventsOf(old.id)]).toEqual([true, 4]);
  });
});

test('idempotency keys go after 24 hours, uploads that never came after a day, dead services after an hour', async () => {
  const key = (age: string) =>
    db().query(
      `INSERT INTO idempotency_keys (team_id, principal, key, request_hash, status, response, created_at)
       VALUES ($1, 'p', $2::text, '', 200, '{}', now() - ($2::text)::interval)`,
      [engine.teamId, age],
    );
  await key('25 hours');
  await key('23 hours');
  const run = await endedRun(1);
  const artifact = async (age: string, isReady: boolean) => {
    const id = randomUUIDv7();
    await db().query(
      `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready, created_at)
       VALUES ($1, $2, $3, $1, $1, 'FILE', '{}', $4, now() - $5::interval)`,
      [id, engine.teamId, run.id, isReady, age],
    );
    return id;
  };
  const artifacts = [
    await artifact('25 hours', false),
    await artifact('23 hours', false),
    await artifact('25 hours', true),
  ];
  const [dead, alive] = [randomUUIDv7(), randomUUIDv7()];
  await db().query(
    `INSERT INTO service_instances (id, seen_at) VALUES ($1, now() - interval '61 minutes'), ($2, now() - interval '59 minutes')`,
    [dead, alive],
  );
  await sweep();
  expect(await db().query('SELECT key FROM idempotency_keys')).toEqual([{ key: '23 hours' }]);
  expect(await Promise.all(artifacts.map((id) => isRow('artifacts', id)))).toEqual([false, true, true]);
  expect([await isRow('service_instances', dead), await isRow('service_instances', alive)]).toEqual([false, true]);
});

test('each night notes where transactions are, and keeps the notes for 30 days', async () => {
  await db().query('DELETE FROM event_stream_marks');
  await db().query(
    `INSERT INTO event_stream_marks VALUES (now() - interval '31 days', '1'), (now() - interval '8 days', '2')`,
  );
  await sweep();
  const marks = await db().query('SELECT xact::text::bigint AS xact FROM event_stream_marks ORDER BY marked_at');
  expect(marks).toEqual([{ xact: 2 }, { xact: expect.any(Number) }]);
});

describe('blobs', () => {
  const later = () => Date.now() + graceMs + 60_000;

  test('that no row names are deleted after a day, not before; those of rows and of unknown kinds stay', async () => {
    const run = await endedRun(1);
    const orphans = [
      await put(`attachments/${randomUUIDv7()}`),
      await put(`artifacts/${randomUUIDv7()}/${randomUUIDv7()}`),
      await put(`transcripts/${randomUUIDv7()}/${randomUUIDv7()}`),
    ];
    const unknown = await put(`snapshots/${randomUUIDv7()}`);
    await sweep();
    for (const key of orphans) expect(await isThere(key)).toBe(true);
    await night();
    await sweep({ now: later });
    for (const key of orphans) expect(await isThere(key)).toBe(false);
    for (const key of [run.attachmentKey, run.transcriptKey, unknown]) expect(await isThere(key)).toBe(true);
    expect(logged.join('')).toContain('left alone');
    await blobs.delete(unknown);
  });

  test('of more than one batch are told apart', async () => {
    const run = await endedRun(1);
    const orphans = await Promise.all(Array.from({ length: 510 }, () => put(`attachments/${randomUUIDv7()}`)));
    await sweep({ now: later });
    expect(await Promise.all(orphans.map(isThere))).not.toContain(true);
    expect(await isThere(run.attachmentKey)).toBe(true);
  });

  test('that a row names and that are gone are told in the log, and the row stays', async () => {
    const run = await endedRun(1);
    await blobs.delete(run.transcriptKey);
    await sweep();
    const told = logged.map((line) => JSON.parse(line)).filter(({ msg }) => /names a blob/.test(msg));
    expect(told).toEqual([expect.objectContaining({ table: 'executions', blob_key: run.transcriptKey })]);
    expect(await isRow('runs', run.id)).toBe(true);
    await db().query('UPDATE executions SET transcript_blob = NULL, transcript_bytes = 0 WHERE run_id = $1', [run.id]);
  });
});

describe('the sweep', () => {
  test('is done once a night, however many processes come', async () => {
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => sweep()));
    expect(outcomes.sort()).toEqual(['done', 'not_due', 'not_due', 'not_due', 'not_due']);
    expect(await sweep()).toBe('not_due');
    const [row] = await db().query<Record<string, unknown>>(
      `SELECT next_at > now() AND next_at <= now() + interval '24 hours' AS soon,
         extract(hour FROM next_at AT TIME ZONE 'UTC')::int AS hour, claimed_by, result FROM sweeps`,
    );
    expect(row).toMatchObject({ soon: true, hour: 3, claimed_by: null, result: { runs: expect.any(Number) } });
  });

  test('of a process that died is taken over when its claim has run out, and the dead one is refused', async () => {
    const died = await claimSweep(db(), 'retention', randomUUIDv7());
    expect(await sweep()).toBe('not_due');
    await db().query(`UPDATE sweeps SET claimed_until = now() - interval '1 second'`);
    expect(await sweep()).toBe('done');
    expect(await died?.renew()).toBe(false);
    await died?.release(0);
    expect(await sweep()).toBe('not_due');
  });

  test('stops between two batches when its process ends, and another one goes on', async () => {
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

  test('that fails is told and tried again later', async () => {
    await endedRun(500);
    const broken: BlobStore = { ...blobs, delete: () => Promise.reject(new Error('the disk is read-only')) };
    await expect(sweep({ blobs: broken })).rejects.toThrow('read-only');
    expect(await sweep()).toBe('not_due');
    const [row] = await db().query(`SELECT next_at < now() + interval '16 minutes' AS soon, claimed_by FROM sweeps`);
    expect(row).toEqual({ soon: true, claimed_by: null });
  });
});
