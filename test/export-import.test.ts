import { randomBytes, randomUUID } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ensureEpoch } from '../packages/service/src/live/epoch.ts';
import type { BlobStore } from '../packages/service/src/store/blobs/blobs.ts';
import { openFolderBlobs } from '../packages/service/src/store/blobs/folder-blobs.ts';
import { type Database, openDatabase } from '../packages/service/src/store/database/database.ts';
import { silentLog } from '../packages/service/src/store/database/log.ts';
import { migrateDatabase, migrationsFolder } from '../packages/service/src/store/migrations/migrate.ts';
import { exportDatabase } from '../packages/service/src/store/transfer/export.ts';
import { importDatabase } from '../packages/service/src/store/transfer/import.ts';
import { createEmptyDatabase, createTestDatabase } from '../packages/service/test/database.ts';
import { type SystemServer, startSystemPostgres, systemPostgres } from './support/system-postgres.ts';

let folder: string;
let cleanUp: (() => Promise<unknown>)[];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'runyard-export-'));
  cleanUp = [];
});
afterEach(async () => {
  for (const step of cleanUp.reverse()) await step();
  await rm(folder, { recursive: true });
});

interface Place {
  db: Database;
  blobs: BlobStore;
}

async function place(options: { server?: string; migrated?: boolean } = {}): Promise<Place> {
  if (options.server === undefined && options.migrated !== false) {
    const { db, drop } = await createTestDatabase({ maxConnections: 4 });
    cleanUp.push(drop);
    return { db, blobs: await openFolderBlobs(path.join(folder, randomUUID())) };
  }
  const made = await createEmptyDatabase(options.server);
  const db = await openDatabase({ address: { connectionString: made.url }, maxConnections: 4, log: silentLog });
  cleanUp.push(made.drop, () => db.close());
  if (options.migrated !== false) await migrateDatabase(db);
  return { db, blobs: await openFolderBlobs(path.join(folder, randomUUID())) };
}

const awkward = 'tab\t newline\n backslash \\ \\. \\N quote " \' €  \u{1f600} \u0001';
const picture = randomBytes(3_000_000);

/** Rows with every type, references in both directions, and what COPY's text format must escape. */
async function fill({ db, blobs }: Place): Promise<void> {
  const [team, user, parent, child] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  await db.query(
    `INSERT INTO teams (id, uid, name, served_at) VALUES ($1, 'team', $2, '2026-11-21T10:44:01.123456Z'), ($3, 'other', '', '-infinity')`,
    [team, awkward, randomUUID()],
  );
  await db.query(`INSERT INTO users (id, uid, display_name) VALUES ($1, 'user', '\\.')`, [user]);
  await db.query(`INSERT INTO server_secrets VALUES ('key', $1)`, [Buffer.from([0, 1, 92, 10, 255])]);
  // The child first: its parent comes later in the file than in the order of references.
  for (const [id, parentId] of [
    [parent, null],
    [child, parent],
  ]) {
    await db.query(
      `INSERT INTO runs (id, team_id, state, title, prompt, config, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
         parent_run_id, ancestor_ids, conversation_id, current_execution_id)
       VALUES ($1, $2, 'QUEUED', $3, $3, $4, 'm', 'oz', 'API', 'user', 'u', 'user', 'u', $5, $6, $1, $1)`,
      [id, team, awkward, JSON.stringify({ text: awkward, list: [1, null] }), parentId, parentId ? [parentId] : []],
    );
  }
  await blobs.put('artifacts/empty', Readable.from([]), { maxBytes: 10 });
  await blobs.put('artifacts/picture', Readable.from([picture]), { maxBytes: 1e7 });
}

/** Every row of every table as text, and the next value of an identity column. */
async function contents({ db, blobs }: Place): Promise<unknown> {
  const tables = await db.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migrations' ORDER BY 1`,
  );
  const rows: Record<string, unknown> = {};
  for (const { name } of tables) rows[name] = await db.query(`SELECT t::text FROM ${name} t ORDER BY 1`);
  const stored: Record<string, string> = {};
  for await (const { key } of blobs.list()) {
    const blob = await blobs.get(key);
    if (blob) stored[key] = (await buffer(blob.stream)).toString('base64');
  }
  const constraints = await db.query(
    `SELECT conrelid::regclass::text AS t, conname, pg_get_constraintdef(oid) AS d, convalidated FROM pg_constraint WHERE contype = 'f' ORDER BY 1, 2`,
  );
  return { rows, stored, constraints };
}

const isEmpty = async ({ db, blobs }: Place) => {
  const [row] = await db.query<{ n: number }>('SELECT (SELECT count(*) FROM teams) + (SELECT count(*) FROM runs) AS n');
  for await (const _ of blobs.list()) return false;
  return row?.n === 0;
};

const file = () => path.join(folder, 'export');

describe.runIf(systemPostgres)('from one kind of database to another', () => {
  let system: SystemServer;
  beforeAll(async () => {
    system = await startSystemPostgres(systemPostgres ?? '');
  });
  afterAll(() => system.stop());

  test('returns the same rows, blobs and next sequence numbers after a move from the embedded database to a server and back', async () => {
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

test('copies through streams into a database without tables', async () => {
  const source = await place();
  await fill(source);
  const pipe = new PassThrough();
  const target = await place({ migrated: false });
  await Promise.all([exportDatabase({ ...source, to: pipe }), importDatabase({ ...target, from: pipe })]);
  expect(await contents(target)).toEqual(await contents(source));
});

test('gives an imported database an epoch of its own and shows none of its old events as news', async () => {
  const source = await place();
  await fill(source);
  const before = await ensureEpoch(source.db);
  // A server that has had more transactions than the one of the import.
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

test('writes a file for its owner only and leaves no half-written one', async () => {
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
  expect((await readdir(folder)).filter((name) => name.startsWith('export'))).toEqual(['export']);
});

test('exports all tables as of one moment while others write', async () => {
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

describe('refuses an import and leaves nothing', () => {
  let target: Place;
  let source: Place;
  beforeEach(async () => {
    [source, target] = await Promise.all([place(), place()]);
    await fill(source);
    await exportDatabase({ ...source, to: file() });
  });

  test('if a table has rows', async () => {
    await target.db.query(`INSERT INTO users (id, uid, display_name) VALUES ($1, 'here', '')`, [randomUUID()]);
    await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/not empty: table users has rows/);
    expect(await target.db.query('SELECT uid FROM users')).toEqual([{ uid: 'here' }]);
  });

  test.each([0.05, 0.5, 0.999])('if the file is cut after %d of it', async (part) => {
    await truncate(file(), Math.floor((await stat(file())).size * part));
    await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/cut off/);
    expect(await isEmpty(target)).toBe(true);
  });

  test('and removes no blob that was there before, such as those of the exported installation', async () => {
    await truncate(file(), (await stat(file())).size - 10);
    const keys = async () => {
      const found: string[] = [];
      for await (const { key } of source.blobs.list()) found.push(key);
      return found.sort();
    };
    const before = await keys();
    expect(before.length).toBeGreaterThan(0);
    await expect(importDatabase({ db: target.db, blobs: source.blobs, from: file() })).rejects.toThrow(/cut off/);
    expect(await keys()).toEqual(before);
  });

  test('if a byte of a row or a blob was changed', async () => {
    const bytes = await readFile(file());
    for (const at of [bytes.indexOf('newline'), bytes.length - 1000]) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      await expect(importDatabase({ ...target, from: Readable.from([changed]) })).rejects.toThrow(/damaged/);
      expect(await isEmpty(target)).toBe(true);
    }
    await importDatabase({ ...target, from: file() });
    expect(await contents(target)).toEqual(await contents(source));
  });

  test('if a row breaks a reference', async () => {
    await source.db.query('ALTER TABLE runs DROP CONSTRAINT runs_team_id_fkey');
    await source.db.query('DELETE FROM teams');
    await exportDatabase({ ...source, to: file() });
    await expect(importDatabase({ ...target, from: file() })).rejects.toMatchObject({ code: '23503' });
    expect(await isEmpty(target)).toBe(true);
  });

  test('if a head was changed, also that of a sequence', async () => {
    const text = await readFile(file(), 'latin1');
    for (const [pattern, by] of [
      [/"teams_number_seq","lastValue":"2"/, '"teams_number_seq","lastValue":"1"'],
      ['{"blob":"artifacts/empty"', '{"blob":"artifacts/empti"'],
      [/"migrations":.*/, '"x":1}'],
      ['{"table":"runs"', '{"cable":"runs"'],
    ] as const) {
      const changed = text.replace(pattern, by);
      expect(changed).not.toBe(text);
      await writeFile(`${file()}2`, changed, 'latin1');
      await expect(importDatabase({ ...target, from: `${file()}2` })).rejects.toThrow(/damaged/);
      expect(await isEmpty(target)).toBe(true);
    }
  });

  test.each(['', 'PK\u0003\u0004', '{"some":"json"}\n', 'x'.repeat(3_000_000)])(
    'if it is another kind of file',
    async (content) => {
      await writeFile(file(), content);
      await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/not a Runyard export|cut off/);
    },
  );

  test('if the file was made by a Runyard with other migrations', async () => {
    await writeFile(file(), await withMigration());
    await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/made at migration 9999_future/);
    expect(await isEmpty(target)).toBe(true);
  });

  test('and creates no table if the file is of a newer Runyard, or the database belongs to another program', async () => {
    const empty = await place({ migrated: false });
    const tables = () => empty.db.query(`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`);
    await writeFile(`${file()}2`, await withMigration());
    await expect(importDatabase({ ...empty, from: `${file()}2` })).rejects.toThrow(/does not have/);
    expect(await tables()).toEqual([]);
    await empty.db.query('CREATE TABLE recipes (id integer)');
    await expect(importDatabase({ ...empty, from: file() })).rejects.toThrow(/another program, such as recipes/);
    expect(await tables()).toEqual([{ tablename: 'recipes' }]);
  });
});

/** Returns an export of a version that has one more migration. */
async function withMigration(): Promise<Buffer> {
  const bytes = await readFile(file());
  const end = bytes.indexOf(10);
  const head = JSON.parse(bytes.subarray(0, end).toString());
  head.migrations.push({ version: 9999, name: '9999_future', checksum: 'x' });
  return Buffer.concat([Buffer.from(JSON.stringify(head)), bytes.subarray(end)]);
}

describe('from an older version', () => {
  const add = async (folderOfMigrations: string, sql: string) =>
    await writeFile(path.join(folderOfMigrations, '9999_more.sql'), sql);

  test('continues after an import that ended while it made the tables', async () => {
    const source = await place();
    await fill(source);
    await exportDatabase({ ...source, to: file() });
    const target = await place({ migrated: false });
    await migrateDatabase(target.db, { upTo: 3 });
    await importDatabase({ ...target, from: file() });
    expect(await contents(target)).toEqual(await contents(source));
  });

  test('says that the rows are there if only the migration to the present version fails', async () => {
    const source = await place();
    await fill(source);
    await exportDatabase({ ...source, to: file() });
    const newer = path.join(folder, 'migrations');
    await cp(migrationsFolder, newer, { recursive: true });
    await add(newer, 'SELECT 1 / 0');
    const target = await place({ migrated: false });
    const failed = importDatabase({ ...target, from: file(), migrations: newer });
    await expect(failed).rejects.toThrow(/Everything was imported.*division by zero.*Do not import again/);
    await add(newer, 'SELECT 1');
    await migrateDatabase(target.db, { folder: newer });
    expect(await contents(target)).toEqual(await contents(source));
  });
});
