import { randomUUID } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureEpoch } from '../packages/service/src/edges/live/epoch.ts';
import type { BlobStore } from '../packages/service/src/platform/store/blobs/blobs.ts';
import { exportDatabase } from '../packages/service/src/platform/store/transfer/export.ts';
import { importDatabase } from '../packages/service/src/platform/store/transfer/import.ts';
import { type SystemServer, startSystemPostgres, systemPostgres } from './support/system-postgres.ts';
import { contents, fill, type Place, usePlaces } from './support/transfer-places.ts';

const { place, folder, file } = usePlaces();

describe.runIf(systemPostgres)('a move of all data', () => {
  let system: SystemServer;
  beforeAll(async () => {
    system = await startSystemPostgres(systemPostgres ?? '');
  });
  afterAll(() => system.stop());

  test('from the embedded database to a server and back keeps all rows, blobs and next sequence numbers', async () => {
    const embedded = await place();
    await fill(embedded);
    const exported = await exportDatabase({ ...embedded, to: file() });
    expect(exported).toMatchObject({ blobs: 2 });
    const server = await place({ server: system.url });
    expect(await importDatabase({ ...server, from: file() })).toEqual(exported);
    expect(await contents(server)).toEqual(await contents(embedded));

    await server.db.query(`INSERT INTO teams (id, uid, name) VALUES ($1, 'third', '')`, [randomUUID()]);
    expect(await server.db.query("SELECT number FROM teams WHERE uid = 'third'")).toEqual([{ number: 3 }]);

    await exportDatabase({ ...server, to: `${file()}2` });
    const back = await place();
    await importDatabase({ ...back, from: `${file()}2` });
    expect(await contents(back)).toEqual(await contents(server));
  });
});

test('an import creates the tables in an empty database, and can read the stream that an export writes', async () => {
  const source = await place();
  await fill(source);
  const pipe = new PassThrough();
  const target = await place({ migrated: false });
  await Promise.all([exportDatabase({ ...source, to: pipe }), importDatabase({ ...target, from: pipe })]);
  expect(await contents(target)).toEqual(await contents(source));
});

test('an imported database has its own epoch, and event streams do not send its old events as new', async () => {
  const source = await place();
  await fill(source);
  const before = await ensureEpoch(source.db);
  // Give these events higher transaction numbers than new events in the target database get.
  await source.db.query(
    `INSERT INTO run_events (run_id, seq, state, xact) SELECT id, 1, state, (pg_current_xact_id()::text::bigint + 1000000)::text::xid8 FROM runs`,
  );
  await exportDatabase({ ...source, to: file() });
  const target = await place();
  await importDatabase({ ...target, from: file() });
  expect(await ensureEpoch(target.db)).not.toBe(before);
  expect(await target.db.query('SELECT DISTINCT xact::text AS xact FROM run_events')).toEqual([{ xact: '0' }]);
  await target.db.query(`INSERT INTO run_events (run_id, seq, state) SELECT id, 2, state FROM runs`);
  expect(await target.db.query(`SELECT FROM run_events WHERE xact > '0'`)).toHaveLength(2);
});

test('an export writes a file that only its owner can read, and leaves no partial file after an error', async () => {
  const source = await place();
  await fill(source);
  await exportDatabase({ ...source, to: file() });
  expect((await stat(file())).mode & 0o777).toBe(0o600);
  const broken: BlobStore = {
    ...source.blobs,
    list: () => {
      throw new Error('disk gone');
    },
  };
  await expect(exportDatabase({ db: source.db, blobs: broken, to: `${file()}2` })).rejects.toThrow('disk gone');
  expect((await readdir(folder())).filter((name) => name.startsWith('export'))).toEqual(['export']);
});

test('an export contains the state of all tables at one moment, although other connections write', async () => {
  const source = await place();
  await fill(source);
  let writing = true;
  let written = 0;
  const writer = (async () => {
    while (writing) {
      const id = randomUUID();
      await source.db.transaction(async (tx) => {
        await tx.query(`INSERT INTO teams (id, uid, name) VALUES ($1, $2, 'pair')`, [id, id]);
        await tx.query(`INSERT INTO users (id, uid, display_name) VALUES ($1, $2, 'pair')`, [id, id]);
      });
      written += 1;
    }
  })();
  writer.catch(() => undefined);
  await expect.poll(() => written).toBeGreaterThan(0);
  const targets: Place[] = [];
  for (let round = 0; round < 2; round += 1) {
    await exportDatabase({ ...source, to: `${file()}${round}` });
    const target = await place();
    await importDatabase({ ...target, from: `${file()}${round}` });
    targets.push(target);
  }
  writing = false;
  await writer;
  for (const { db } of targets) {
    const [counts] = await db.query<{ t: number; u: number }>(
      "SELECT (SELECT count(*) FROM teams WHERE name = 'pair') AS t, (SELECT count(*) FROM users WHERE display_name = 'pair') AS u",
    );
    expect(counts?.t).toBe(counts?.u);
    expect(counts?.t).toBeGreaterThan(0);
  }
});
