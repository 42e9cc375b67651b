/** Tests imports that are refused or fail, and the content of the target afterwards. */
import { randomUUID } from 'node:crypto';
import { appendFile, cp, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, test } from 'vitest';
import { migrateDatabase, migrationsFolder } from '../packages/service/src/platform/store/migrations/migrate.ts';
import { exportDatabase } from '../packages/service/src/platform/store/transfer/export.ts';
import { sectionBody } from '../packages/service/src/platform/store/transfer/export-format.ts';
import { importDatabase } from '../packages/service/src/platform/store/transfer/import.ts';
import { verifyExport } from '../packages/service/src/platform/store/transfer/read-sections.ts';
import { contents, fill, isEmpty, type Place, usePlaces } from './support/transfer-places.ts';

const { place, folder, file } = usePlaces();

describe('a refused import leaves nothing in the target', () => {
  let target: Place;
  let source: Place;
  beforeEach(async () => {
    [source, target] = await Promise.all([place(), place()]);
    await fill(source);
    await exportDatabase({ ...source, to: file() });
  });

  test('if a table of the target has rows', async () => {
    await target.db.query(`INSERT INTO users (id, uid, display_name) VALUES ($1, 'here', '')`, [randomUUID()]);
    await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/not empty: table users has rows/);
    expect(await target.db.query('SELECT uid FROM users')).toEqual([{ uid: 'here' }]);
  });

  test.each([0.05, 0.5, 0.999])('if the file is cut off (%d of its bytes are left)', async (part) => {
    await truncate(file(), Math.floor((await stat(file())).size * part));
    await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/cut off/);
    expect(await isEmpty(target)).toBe(true);
    await expect(verifyExport(file())).rejects.toThrow(/cut off/);
  });

  test('if bytes follow the end of the backup', async () => {
    await appendFile(file(), 'x');
    await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/damaged/);
    expect(await isEmpty(target)).toBe(true);
    await expect(verifyExport(file())).rejects.toThrow(/damaged/);
  });

  test('and does not remove blobs that were in the blob store before the import', async () => {
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
      await expect(verifyExport(Readable.from([changed]))).rejects.toThrow(/damaged/);
    }
    const verified = await verifyExport(file());
    expect(verified).toMatchObject(await importDatabase({ ...target, from: file() }));
    expect(await contents(target)).toEqual(await contents(source));
  });

  test('if a blob has the name of the marker, with which the service would never be ready', async () => {
    const bytes = await readFile(file());
    const head = bytes.subarray(0, bytes.indexOf(10) + 1);
    async function* hostile() {
      yield head;
      yield Buffer.from('{"blob":"installation"}\n');
      yield* sectionBody(Readable.from([Buffer.from('another id')]));
    }
    await expect(importDatabase({ ...target, from: Readable.from(hostile()) })).rejects.toThrow('a blob installation');
    expect(await isEmpty(target)).toBe(true);
  });

  test('if a row violates a foreign key', async () => {
    await source.db.query('ALTER TABLE runs DROP CONSTRAINT runs_team_id_fkey');
    await source.db.query('DELETE FROM teams');
    await exportDatabase({ ...source, to: file() });
    await expect(importDatabase({ ...target, from: file() })).rejects.toMatchObject({ code: '23503' });
    expect(await isEmpty(target)).toBe(true);
  });

  test('if a header was changed, including the header of a sequence', async () => {
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
    'if the file is not an export',
    async (content) => {
      await writeFile(file(), content);
      await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/not a Runyard backup|cut off/);
    },
  );

  test('if the file was made by a version with a migration that this version does not have', async () => {
    await writeFile(file(), await withMigration());
    await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(/made at migration 9999_future/);
    expect(await isEmpty(target)).toBe(true);
  });

  test('and creates no table, if the file was made by a newer version, or if the database belongs to another program', async () => {
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

/** Returns the bytes of the export as a newer version with one more migration would write them. */
const withMigration = () =>
  withMigrations((migrations) => [...migrations, { version: 9999, name: '9999_future', checksum: 'x' }]);

interface ExportedMigration {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
}

/** Returns the bytes of the export with another list of migrations, and without `heads`, which older versions did not write. */
async function withMigrations(change: (migrations: ExportedMigration[]) => ExportedMigration[]): Promise<Buffer> {
  const bytes = await readFile(file());
  const end = bytes.indexOf(10);
  const head = JSON.parse(bytes.subarray(0, end).toString());
  head.migrations = change(head.migrations);
  const rest = Buffer.from(
    bytes
      .subarray(end)
      .toString('latin1')
      .replace(/,"heads":"[0-9a-f]{64}"/, ''),
    'latin1',
  );
  return Buffer.concat([Buffer.from(JSON.stringify(head)), rest]);
}

/** Returns the first `count` of the migrations that the baseline replaced. */
async function replacedMigrations(count: number): Promise<ExportedMigration[]> {
  const text = await readFile(path.join(migrationsFolder, 'replaced-migrations.txt'), 'utf8');
  return text
    .trim()
    .split('\n')
    .slice(0, count)
    .map((line) => {
      const [name = '', checksum = ''] = line.split(' ');
      return { version: Number(name.slice(0, 4)), name, checksum };
    });
}

describe('an import of a file from an older version', () => {
  const add = async (folderOfMigrations: string, sql: string) =>
    await writeFile(path.join(folderOfMigrations, '9999_more.sql'), sql);

  test('succeeds if the file is from the last version before the baseline migration', async () => {
    const source = await place({ migrated: false });
    await migrateDatabase(source.db, { upTo: 23 });
    await fill(source);
    await exportDatabase({ ...source, to: file() });
    const replaced = await replacedMigrations(39);
    await writeFile(file(), await withMigrations(() => replaced));
    const target = await place({ migrated: false });
    await importDatabase({ ...target, from: file() });
    await migrateDatabase(source.db);
    await migrateDatabase(target.db);
    expect(await contents(target)).toEqual(await contents(source));
  });

  test('is refused if the file is from an even older version, and the error names the version that can import the file', async () => {
    const source = await place();
    await exportDatabase({ ...source, to: file() });
    const replaced = await replacedMigrations(38);
    await writeFile(file(), await withMigrations(() => replaced));
    const target = await place({ migrated: false });
    await expect(importDatabase({ ...target, from: file() })).rejects.toThrow(
      `The backup is too old for this Runyard: it was made at migration 0038_equal_times. Restore it with the Runyard of commit 42e71785. Then start the Runyard of commit 42e71785 once on the same database, and then this one.`,
    );
    expect(await target.db.query(`SELECT FROM pg_tables WHERE schemaname = 'public'`)).toEqual([]);
  });

  test('succeeds after an earlier import has created only some of the tables', async () => {
    const source = await place();
    await fill(source);
    await exportDatabase({ ...source, to: file() });
    const target = await place({ migrated: false });
    await migrateDatabase(target.db, { upTo: 3 });
    await importDatabase({ ...target, from: file() });
    expect(await contents(target)).toEqual(await contents(source));
  });

  test('reports that the rows are imported if only a later migration fails', async () => {
    const source = await place();
    await fill(source);
    await exportDatabase({ ...source, to: file() });
    const newer = path.join(folder(), 'migrations');
    await cp(migrationsFolder, newer, { recursive: true });
    await add(newer, 'SELECT 1 / 0');
    const target = await place({ migrated: false });
    const failed = importDatabase({ ...target, from: file(), migrations: newer });
    await expect(failed).rejects.toThrow(/Everything was restored.*division by zero.*Do not restore again/);
    await add(newer, 'SELECT 1');
    await migrateDatabase(target.db, { folder: newer });
    expect(await contents(target)).toEqual(await contents(source));
  });
});
