import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openTestSweeps } from '../../../test/sweeps.ts';
import { graceMs } from './blobs.ts';

const sweeps = await openTestSweeps();
const { db, blobs, logged, sweep, night, put, isThere, isRow, endedRun } = sweeps;

describe('the sweep of blobs', () => {
  const later = () => Date.now() + graceMs + 60_000;

  test('deletes blobs without a row after a day, and keeps blobs with a row and blobs of unknown kinds', async () => {
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

  test('distinguishes blobs with and without a row in more than one batch', async () => {
    const run = await endedRun(1);
    const orphans = await Promise.all(Array.from({ length: 510 }, () => put(`attachments/${randomUUIDv7()}`)));
    await sweep({ now: later });
    expect(await Promise.all(orphans.map(isThere))).not.toContain(true);
    expect(await isThere(run.attachmentKey)).toBe(true);
  });

  test('keeps the bytes of prepared files for a day, and the bytes of used files as long as the run exists', async () => {
    const run = await endedRun(1);
    const add = async (table: string, columns: string, values: string) => {
      const id = randomUUIDv7();
      const key = await put(`attachments/${id}/${randomUUIDv7()}`);
      await db.query(
        `INSERT INTO ${table} (id, run_id, file_name, mime_type, size_bytes, sha256, blob_key, ${columns})
         SELECT $1, id, 'a', 'a/b', 1, '', $3, ${values} FROM runs WHERE id = $2`,
        [id, run.id, key],
      );
      return { id, key };
    };
    const prepared = (age: string) =>
      add(
        'prepared_attachments',
        'team_id, created_by_kind, created_by_uid, created_at',
        `team_id, 'user', 'u', now() - interval '${age}'`,
      );
    const used = await add('attachments', 'position', '0');
    const [young, old] = [await prepared('23 hours'), await prepared('25 hours')];
    await sweep({ now: later });
    const isLeft = async ({ id, key }: typeof used) => [await isRow('prepared_attachments', id), await isThere(key)];
    expect([await isLeft(young), await isLeft(old), await isThere(used.key)]).toEqual([
      [true, true],
      [false, false],
      true,
    ]);
  });

  test('logs a row whose blob is missing, and keeps the row', async () => {
    const run = await endedRun(1);
    await blobs.delete(run.transcriptKey);
    await sweep();
    const told = logged.map((line) => JSON.parse(line)).filter(({ msg }) => /names a missing blob/.test(msg));
    expect(told).toEqual([expect.objectContaining({ table: 'executions', blob_key: run.transcriptKey })]);
    expect(await isRow('runs', run.id)).toBe(true);
    await db.query('UPDATE executions SET transcript_blob = NULL, transcript_bytes = 0 WHERE run_id = $1', [run.id]);
  });
});
