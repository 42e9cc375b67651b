import { execFile } from 'node:child_process';
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../../test/support/close-at-end.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../../../test/database.ts';
import type { Database } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { openDatabase } from '../database/open-database.ts';
import { baselineOf, migrateDatabase, migrationsFolder, readMigrations } from './migrate.ts';

let folder: string;
let empty: Awaited<ReturnType<typeof createEmptyDatabase>>;
let db: Database;
beforeEach(async () => {
  folder = newFolder();
  empty = closeAtEnd(await createEmptyDatabase());
  db = closeAtEnd(await openDatabase({ address: { connectionString: empty.url }, maxConnections: 2, log: silentLog }));
});

const write = (name: string, sql: string) => writeFile(path.join(folder, name), sql);

test('each migration is applied once, in the order of the numbers', async () => {
  await write('0002_more.sql', 'ALTER TABLE things ADD COLUMN b int;');
  await write('0001_things.sql', 'CREATE TABLE things (a int); INSERT INTO things VALUES (1);');
  expect(await migrateDatabase(db, { folder })).toEqual(['0001_things', '0002_more']);
  expect(await migrateDatabase(db, { folder })).toEqual([]);
  expect(await db.query('SELECT * FROM things')).toEqual([{ a: 1, b: null }]);
});

test('a migration that fails in the middle is rolled back, and the earlier migrations stay applied', async () => {
  await write('0001_things.sql', 'CREATE TABLE things (a int);');
  await write('0002_bad.sql', 'CREATE TABLE more (a int); SELECT 1/0;');
  await expect(migrateDatabase(db, { folder })).rejects.toThrow(/0002_bad failed: division by zero/);
  expect(await db.query("SELECT to_regclass('things')::text AS things, to_regclass('more')::text AS more")).toEqual([
    { things: 'things', more: null },
  ]);
  await write('0002_bad.sql', 'CREATE TABLE more (a int);');
  expect(await migrateDatabase(db, { folder })).toEqual(['0002_bad']);
});

describe('migrating', () => {
  beforeEach(async () => {
    await write('0001_things.sql', 'CREATE TABLE things (a int);\n');
    await migrateDatabase(db, { folder });
  });

  test('fails if an applied migration was changed', async () => {
    await write('0001_things.sql', 'CREATE TABLE things (a bigint);\n');
    await write('0002_more.sql', 'CREATE TABLE more (a int);');
    await expect(migrateDatabase(db, { folder })).rejects.toThrow(/0001_things was changed after it was applied/);
    expect(await db.query("SELECT to_regclass('more')::text AS more")).toEqual([{ more: null }]);
  });

  test('fails if the database has a migration with the same number and another name', async () => {
    await rm(path.join(folder, '0001_things.sql'));
    await write('0001_start.sql', 'CREATE TABLE things (a int);\n');
    await expect(migrateDatabase(db, { folder })).rejects.toThrow(
      /0001_things where this Runyard has 0001_start: .* Start the Runyard that made it, or start this one with a new data folder/,
    );
  });

  test('fails if a new migration has a lower number than an applied one', async () => {
    await write('0003_more.sql', 'CREATE TABLE more (a int);');
    await migrateDatabase(db, { folder });
    await write('0002_late.sql', 'CREATE TABLE late (a int);');
    await expect(migrateDatabase(db, { folder })).rejects.toThrow(/0002_late comes before 0003_more/);
  });

  test('succeeds if only the line ends of an applied migration have changed', async () => {
    await write('0001_things.sql', 'CREATE TABLE things (a int);\r\n');
    expect(await migrateDatabase(db, { folder })).toEqual([]);
  });
});

describe('a database that is newer than the code', () => {
  const newer = async (sql: string) => {
    await write('0001_things.sql', 'CREATE TABLE things (a int);');
    await write('0002_more.sql', sql);
    await migrateDatabase(db, { folder });
    await rm(path.join(folder, '0002_more.sql'));
  };

  test('stays unchanged if its newer migrations only added to the schema', async () => {
    await newer('CREATE TABLE more (a int);');
    expect(await migrateDatabase(db, { folder })).toEqual([]);
  });

  test('is refused, if one of its newer migrations needs newer code than this code', async () => {
    await newer('-- Contract: needs code of migration 0002 or later.\nCREATE TABLE more (a int);');
    await expect(migrateDatabase(db, { folder })).rejects.toThrow(
      'migration 0002_more needs code of migration 2 or later, and this code ends at 1. Start a newer Runyard.',
    );
  });

  test('is accepted, if its newer migrations need newer code, but this code is new enough', async () => {
    await newer('-- Contract: needs code of migration 0001 or later.\nCREATE TABLE more (a int);');
    expect(await migrateDatabase(db, { folder })).toEqual([]);
  });
});

/** Patterns of statements after which code of the previous release fails, or writes rows that the schema refuses. */
const contracting: Readonly<Record<string, RegExp>> = {
  'drops a table, a column, a function or a rule': /\bDROP (?:TABLE|COLUMN|FUNCTION|TYPE|VIEW|CONSTRAINT)\b/i,
  'renames a table or a column': /\bRENAME (?:TO|COLUMN)\b/i,
  'changes the type of a column': /\bALTER COLUMN \w+ (?:SET DATA )?TYPE\b/i,
  'forbids NULL in a column': /\bSET NOT NULL\b/i,
  'adds a column that old code does not fill': /\bADD COLUMN (?![^,;]*\bDEFAULT\b)[^,;]*\bNOT NULL\b/i,
  'adds a rule to a table that old code writes': /\bALTER TABLE[^;]*\bADD (?:CONSTRAINT|CHECK|UNIQUE|FOREIGN)\b/i,
};

test('each migration after the baseline that breaks older code declares the oldest code that works with it', async () => {
  const migrations = await readMigrations();
  const wrong = migrations
    .slice(baselineOf(migrations).length)
    .filter(({ oldestCode }) => oldestCode === 0)
    .flatMap(({ name, sql }) =>
      Object.entries(contracting).flatMap(([what, pattern]) => (pattern.test(sql) ? [`${name} ${what}`] : [])),
    );
  expect(wrong).toEqual([]);
});

test.each([
  ['drops a table, a column, a function or a rule', 'ALTER TABLE runs DROP COLUMN title;'],
  ['renames a table or a column', 'ALTER TABLE runs RENAME COLUMN title TO name;'],
  ['changes the type of a column', 'ALTER TABLE runs ALTER COLUMN title TYPE varchar;'],
  ['forbids NULL in a column', 'ALTER TABLE runs ALTER COLUMN title SET NOT NULL;'],
  ['adds a column that old code does not fill', 'ALTER TABLE runs ADD COLUMN name text NOT NULL;'],
  ['adds a rule to a table that old code writes', 'ALTER TABLE runs ADD CHECK (title > 1);'],
])('a statement that %s is recognised', (what, sql) => {
  expect(Object.keys(contracting).filter((each) => contracting[each]?.test(sql))).toEqual([what]);
});

test('a new column with a default is not reported as breaking older code', () => {
  const sql = 'ALTER TABLE runs ADD COLUMN a text NOT NULL DEFAULT 1, ADD COLUMN b text;';
  expect(Object.values(contracting).some((pattern) => pattern.test(sql))).toBe(false);
});

test('rejects files that share a number or have an invalid name', async () => {
  await write('0001_a.sql', '');
  await write('0001_b.sql', '');
  await expect(readMigrations(folder)).rejects.toThrow(/two migrations with the number 0001/);
  await rm(path.join(folder, '0001_b.sql'));
  await write('2_b.sql', '');
  await expect(readMigrations(folder)).rejects.toThrow(/2_b.sql is not named/);
});

test('three processes that migrate 30 times at the same time apply each migration once', async () => {
  for (const { name } of await readMigrations())
    await copyFile(path.join(migrationsFolder, `${name}.sql`), path.join(folder, `${name}.sql`));
  await write('9998_slow.sql', 'CREATE TABLE slow AS SELECT pg_sleep(0.2)::text;');
  await write('9999_last.sql', 'CREATE TABLE last (a int);');
  const program = `
    import { openDatabase } from ${JSON.stringify(path.join(import.meta.dirname, '../database/open-database.ts'))};
    import { migrateDatabase } from ${JSON.stringify(path.join(import.meta.dirname, 'migrate.ts'))};
    import { silentLog } from ${JSON.stringify(path.join(import.meta.dirname, '../database/log.ts'))};
    const address = { connectionString: process.env.URL };
    const starts = Array.from({ length: 10 }, async () => {
      const db = await openDatabase({ address, maxConnections: 1, log: silentLog });
      const applied = await migrateDatabase(db, { folder: process.env.FOLDER });
      await db.close();
      return applied;
    });
    console.log(JSON.stringify((await Promise.all(starts)).flat()));`;
  const outputs = await Promise.all(
    [1, 2, 3].map(() =>
      promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
        env: { ...process.env, URL: empty.url, FOLDER: folder },
      }),
    ),
  );
  const applied = outputs.flatMap(({ stdout }) => JSON.parse(stdout) as string[]);
  expect(applied.sort()).toEqual((await readMigrations(folder)).map(({ name }) => name));
});

test('migrating needs no other right than to create tables in the schema', async () => {
  const role = `runyard_test_role_${process.pid}`;
  const admin = new pg.Client({ connectionString: empty.url });
  await admin.connect();
  const database = new URL(empty.url).pathname.slice(1);
  try {
    await admin.query(`CREATE ROLE ${role} NOSUPERUSER`);
    await admin.query(`GRANT ALL ON SCHEMA public TO ${role}`);
    // Let new connections take this role after the login. They cannot log in as this role, because a test server may require a password.
    await admin.query(`ALTER ROLE CURRENT_USER IN DATABASE ${database} SET role = '${role}'`);
    const asRole = await openDatabase({ address: { connectionString: empty.url }, maxConnections: 1, log: silentLog });
    try {
      await migrateDatabase(asRole);
      expect(await asRole.query("SELECT tableowner FROM pg_tables WHERE tablename = 'runs'")).toEqual([
        { tableowner: role },
      ]);
    } finally {
      await asRole.close();
    }
  } finally {
    await admin.query(`ALTER ROLE CURRENT_USER IN DATABASE ${database} RESET role`);
    await admin.query(`DROP OWNED BY ${role} CASCADE`);
    await admin.query(`DROP ROLE ${role}`);
    await admin.end();
  }
});

describe('a database with the migrations that the baseline replaced', () => {
  let older: TestDatabase;
  beforeEach(async () => {
    older = closeAtEnd(await createTestDatabase());
  });

  /** Makes the database look as if it had the first `count` of the migrations that the baseline replaced. */
  async function makeOlder(count: number): Promise<void> {
    const text = await readFile(path.join(import.meta.dirname, 'replaced-migrations.txt'), 'utf8');
    const replaced = text.trim().split('\n').slice(0, count);
    await older.db.query('DELETE FROM schema_migrations');
    for (const line of replaced) {
      const [name = '', checksum] = line.split(' ');
      await older.db.query('INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)', [
        Number(name.slice(0, 4)),
        name,
        checksum,
      ]);
    }
  }
  const readNames = async () =>
    (await older.db.query<{ name: string }>('SELECT name FROM schema_migrations ORDER BY version')).map(
      ({ name }) => name,
    );

  /** Copies the migrations of the baseline to the folder, and returns their names. */
  async function copyBaseline(): Promise<string[]> {
    const names = baselineOf(await readMigrations()).map(({ name }) => name);
    for (const name of names)
      await copyFile(path.join(migrationsFolder, `${name}.sql`), path.join(folder, `${name}.sql`));
    return names;
  }

  test('gets the records of the baseline, and then later migrations, if it has all replaced migrations', async () => {
    await makeOlder(39);
    const baseline = await copyBaseline();
    expect(await migrateDatabase(older.db, { folder })).toEqual([]);
    expect(await readNames()).toEqual(baseline);
    await write('0024_more.sql', 'CREATE TABLE more (a int);');
    expect(await migrateDatabase(older.db, { folder })).toEqual(['0024_more']);
  });

  test('keeps the records of the replaced migrations if a later migration fails', async () => {
    await makeOlder(39);
    await copyBaseline();
    await write('9999_bad.sql', 'SELECT 1/0;');
    await expect(migrateDatabase(older.db, { folder })).rejects.toThrow(/9999_bad failed/);
    expect(await readNames()).toHaveLength(39);
  });

  test('is refused if it lacks some of the replaced migrations, and the error names the version to start first', async () => {
    await makeOlder(38);
    await expect(migrateDatabase(older.db)).rejects.toThrow(
      `The database is too old for this Runyard: its last migration is 0038_equal_times. Start the Runyard of commit 42e71785 once on it, then this one.`,
    );
    expect(await readNames()).toHaveLength(38);
  });
});
