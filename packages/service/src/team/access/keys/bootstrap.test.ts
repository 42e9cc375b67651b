import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase, type TestDatabase } from '../../../../test/database.ts';
import { bootstrap, replaceOperatorKey } from './bootstrap.ts';
import { hashKey } from './key.ts';

let database: TestDatabase;
let dataDir: string;
beforeEach(async () => {
  database = closeAtEnd(await createTestDatabase());
  dataDir = newFolder();
});

const works = async (key: string) =>
  (await database.db.query('SELECT 1 FROM api_keys WHERE hash = $1 AND is_operator', [hashKey(key)])).length === 1;
const count = async (table: string) => Number((await database.db.query(`SELECT count(*) FROM ${table}`))[0]?.count);

test('the first start creates one team, one administrator and a key file that only its owner can read', async () => {
  const first = await bootstrap(database.db, { dataDir, key: undefined });
  if (first.kind !== 'ready') throw new Error('no key');
  expect(first.from).toBe('generated');
  const file = path.join(dataDir, 'bootstrap-key');
  expect((await readFile(file, 'utf8')).trim()).toBe(first.key);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await works(first.key)).toBe(true);
  const again = await bootstrap(database.db, { dataDir, key: undefined });
  expect(again).toEqual({ kind: 'ready', key: first.key, from: 'file' });
  expect([await count('teams'), await count('users'), await count('api_keys')]).toEqual([1, 1, 1]);
});

test('many processes that start at once create one key', async () => {
  const results = await Promise.all(
    Array.from({ length: 8 }, () => bootstrap(database.db, { dataDir, key: undefined })),
  );
  expect(new Set(results.map((result) => result.kind === 'ready' && result.key)).size).toBe(1);
  expect([await count('teams'), await count('users'), await count('api_keys')]).toEqual([1, 1, 1]);
});

test('a changed RUNYARD_BOOTSTRAP_KEY replaces the old bootstrap key', async () => {
  await bootstrap(database.db, { dataDir, key: 'first-key-of-twenty-characters' });
  await bootstrap(database.db, { dataDir, key: 'second-key-of-twenty-characters' });
  expect(await works('first-key-of-twenty-characters')).toBe(false);
  expect(await works('second-key-of-twenty-characters')).toBe(true);
  expect(await count('api_keys')).toBe(1);
});

test('the key of RUNYARD_WORKER_KEY connects only workers, and a changed setting replaces only this key', async () => {
  const key = 'operator-key-of-twenty-characters';
  const start = (workerKey: string) => bootstrap(database.db, { dataDir, key, workerKey });
  const kinds = async () =>
    (await database.db.query('SELECT name, kind, is_operator FROM api_keys ORDER BY name COLLATE "C"')).map(
      Object.values,
    );
  await start('first-worker-key-of-the-setting');
  await database.db.query(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, prefix, last_four, created_by_uid)
     SELECT gen_random_uuid(), 'x', 'worker', 'Rack 1', id, '', '', 'someone' FROM teams`,
  );
  expect((await start('second-worker-key-of-the-setting')).kind).toBe('ready');
  expect((await start('second-worker-key-of-the-setting')).kind).toBe('ready');
  expect(await kinds()).toEqual([
    ['RUNYARD_WORKER_KEY', 'worker', false],
    ['Rack 1', 'worker', false],
    ['bootstrap', 'personal', true],
  ]);
  await database.db.query(`UPDATE api_keys SET hash = $1 WHERE name = 'Rack 1'`, [hashKey('key-that-the-api-created')]);
  expect((await start('key-that-the-api-created')).kind).toBe('ready');
  expect(await start(key)).toEqual({ kind: 'worker_key_taken' });
  expect(await works(key)).toBe(true);
});

test('the key in the data folder of one process stays valid when a process with another data folder starts', async () => {
  const first = await bootstrap(database.db, { dataDir, key: undefined });
  const elsewhere = await mkdtemp(path.join(tmpdir(), 'runyard-bootstrap-'));
  expect(await bootstrap(database.db, { dataDir: elsewhere, key: undefined })).toEqual({ kind: 'kept_elsewhere' });
  await rm(elsewhere, { recursive: true });
  expect(first.kind === 'ready' && (await works(first.key))).toBe(true);
});

test('after a crash between the write of the key file and the write to the database, the next start makes the key valid', async () => {
  const failing = {
    ...database.db,
    transaction: (work: Parameters<typeof database.db.transaction>[0]) =>
      database.db.transaction(async (tx) => {
        await work(tx);
        throw new Error('crash');
      }),
  } as typeof database.db;
  await expect(bootstrap(failing, { dataDir, key: undefined })).rejects.toThrow('crash');
  const next = await bootstrap(database.db, { dataDir, key: undefined });
  expect(next.kind === 'ready' && (await works(next.key))).toBe(true);
});

test("the operator's key can be replaced by somebody who does not have the old key, even if the row of the old key was deleted", async () => {
  const first = await bootstrap(database.db, { dataDir, key: undefined });
  await database.db.query('DELETE FROM api_keys');
  const key = await replaceOperatorKey(database.db, dataDir);
  expect(await works(key)).toBe(true);
  expect(first.kind === 'ready' && (await works(first.key))).toBe(false);
  expect((await readFile(path.join(dataDir, 'bootstrap-key'), 'utf8')).trim()).toBe(key);
  expect(await bootstrap(database.db, { dataDir, key: undefined })).toEqual({ kind: 'ready', key, from: 'file' });
  expect([await count('teams'), await count('users'), await count('api_keys')]).toEqual([1, 1, 1]);
});

test('the data folder contains the valid key even if the process is killed while it replaces the key', async () => {
  await bootstrap(database.db, { dataDir, key: undefined });
  const { transaction } = database.db;
  const failing = {
    ...database.db,
    transaction: (work: Parameters<typeof transaction>[0]) =>
      transaction(async (tx) => {
        await work(tx);
        throw new Error('crash');
      }),
  } as typeof database.db;
  await expect(replaceOperatorKey(failing, dataDir)).rejects.toThrow('crash');
  const next = await bootstrap(database.db, { dataDir, key: undefined });
  expect(next.kind === 'ready' && (await works(next.key))).toBe(true);
});

test('a deleted key is not restored from the key file, and no new key is made', async () => {
  const first = await bootstrap(database.db, { dataDir, key: undefined });
  await database.db.query('DELETE FROM api_keys');
  expect(await bootstrap(database.db, { dataDir, key: undefined })).toEqual({ kind: 'stale_file' });
  expect(first.kind === 'ready' && (await works(first.key))).toBe(false);
  await rm(path.join(dataDir, 'bootstrap-key'));
  expect(await bootstrap(database.db, { dataDir, key: undefined })).toEqual({ kind: 'kept_elsewhere' });
  expect(await count('api_keys')).toBe(0);
});

test('a start with a data folder that has the key of another database changes no key', async () => {
  const first = await bootstrap(database.db, { dataDir, key: undefined });
  await writeFile(path.join(dataDir, 'bootstrap-key'), 'a-key-of-another-database');
  expect(await bootstrap(database.db, { dataDir, key: undefined })).toEqual({ kind: 'stale_file' });
  expect(first.kind === 'ready' && (await works(first.key))).toBe(true);
});
