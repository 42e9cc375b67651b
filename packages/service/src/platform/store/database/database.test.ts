import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase, type TestDatabase } from '../../../../test/database.ts';
import { bytesArray } from './bytes-array.ts';
import { acquireFrom, makePool } from './connections.ts';
import { silentLog } from './log.ts';
import { openDatabase } from './open-database.ts';
import { plannedByValues } from './planned-by-values.ts';

const database = closeAtEnd(await createTestDatabase());
await database.db.query('CREATE TABLE counters (name text PRIMARY KEY, value bigint NOT NULL)');

/** Ends all other connections to the database, as a restart of the server would do. Waits until they have ended. */
const cutConnections = () =>
  database.db.query(
    'SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );

describe('values', () => {
  test('a query returns a bigint as a number, and fails if the number is too large to be exact', async () => {
    expect(await database.db.query('SELECT 9007199254740991::bigint AS n, count(*) AS c FROM teams')).toEqual([
      { n: 9007199254740991, c: 0 },
    ]);
    await expect(database.db.query('SELECT 9007199254740992::bigint AS n')).rejects.toThrow(/9007199254740992/);
  });

  test('a query returns a time in UTC as RFC 3339 text with microseconds, even if it was written in another time zone', async () => {
    const [row] = await database.db.query<{ a: string; b: string; c: string; d: null }>(
      `SELECT '2026-11-21 12:44:01.123456+02'::timestamptz AS a, '2026-01-01Z'::timestamptz AS b, '-infinity'::timestamptz AS c, NULL::timestamptz AS d`,
    );
    expect(row).toEqual({
      a: '2026-11-21T10:44:01.123456Z',
      b: '2026-01-01T00:00:00.000000Z',
      c: '-infinity',
      d: null,
    });
    const again = await database.db.query('SELECT $1::timestamptz AS a', [row?.a]);
    expect(again).toEqual([{ a: row?.a }]);
  });

  test.each<[string, (Buffer | null)[]]>([
    ['no', []],
    ['one', [Buffer.from([0, 255, 92])]],
    ['empty and missing', [Buffer.alloc(0), null, Buffer.alloc(70_000, 7)]],
  ])('takes an array with %s bytes in binary format', async (_what, items) => {
    const read = await database.db.query('SELECT $1::bytea[] AS items, cardinality($1::bytea[]) AS length', [
      bytesArray(items),
    ]);
    expect(read).toEqual([{ items, length: items.length }]);
  });
});

describe('query', () => {
  test('prepares a named statement once per connection', async () => {
    const statement = { name: 'test_add', text: 'SELECT $1::int + 1 AS sum' };
    await database.db.transaction(async (tx) => {
      for (const value of [1, 2]) expect(await tx.query(statement, [value])).toEqual([{ sum: value + 1 }]);
      const prepared = await tx.query("SELECT FROM pg_prepared_statements WHERE name = 'test_add'");
      expect(prepared).toHaveLength(1);
    });
  });

  test('keeps the connection after a failed statement', async () => {
    const one = await openDatabase({ address: { connectionString: database.url }, maxConnections: 1, log: silentLog });
    const backend = () => one.query('SELECT pg_backend_pid() AS pid');
    const before = await backend();
    await expect(one.query('SELECT 1/0')).rejects.toMatchObject({ code: '22012' });
    expect(await backend()).toEqual(before);
    await one.close();
  });

  test('runs a named statement even after another process has changed the tables of the statement', async () => {
    await database.db.query('CREATE TABLE shapes (a int)');
    const statement = { name: 'test_shapes', text: 'SELECT * FROM shapes' };
    await database.db.query(statement);
    await database.db.query('ALTER TABLE shapes ADD COLUMN b int');
    await database.db.query('INSERT INTO shapes VALUES (1, 2)');
    expect(await database.db.query(statement)).toEqual([{ a: 1, b: 2 }]);
  });

  test('lets the server cancel a statement that exceeds the time limit', async () => {
    const hasty = await openDatabase({
      address: { connectionString: database.url },
      maxConnections: 1,
      log: silentLog,
      statementTimeoutMs: 1_000,
    });
    await expect(hasty.query('SELECT pg_sleep(20)')).rejects.toMatchObject({ code: '57014' });
    await hasty.close();
  });

  test('reconnects after the server closed all connections', async () => {
    const threeAtOnce = () => Promise.all([1, 2, 3].map(() => database.db.query('SELECT pg_sleep(0.01)')));
    await threeAtOnce();
    await cutConnections();
    await vi.waitFor(threeAtOnce, { timeout: 60_000 });
  });
});

describe('transaction', () => {
  const counter = async (name: string) =>
    (await database.db.query('SELECT value FROM counters WHERE name = $1', [name]))[0]?.value;

  test('commits the changes, and rolls them back if the work throws', async () => {
    await database.db.transaction((tx) => tx.query("INSERT INTO counters VALUES ('kept', 1)"));
    const failing = database.db.transaction(async (tx) => {
      await tx.query("INSERT INTO counters VALUES ('lost', 1)");
      await tx.query({ name: 'lose_too', text: "INSERT INTO counters VALUES ('lost too', 1)" });
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect([await counter('kept'), await counter('lost'), await counter('lost too')]).toEqual([
      1,
      undefined,
      undefined,
    ]);
  });

  test('uses one plan of a statement for all values, except in `plannedByValues`', async () => {
    const mode = "SELECT current_setting('plan_cache_mode') AS mode, current_setting('random_page_cost') AS cost";
    const { db } = database;
    const kept = [{ mode: 'force_generic_plan', cost: '1.1' }];
    expect(await db.query(mode)).toEqual(kept);
    expect(await plannedByValues(db, (tx) => tx.query(mode))).toEqual([{ mode: 'auto', cost: '4' }]);
    expect(await db.transaction((tx) => tx.query(mode))).toEqual(kept);
  });

  test('rejects if the work has ignored the failure of a statement, because nothing was committed', async () => {
    const swallowing = database.db.transaction(async (tx) => {
      await tx.query("INSERT INTO counters VALUES ('swallowed', 1)");
      await tx.query('SELECT 1/0').catch(() => undefined);
    });
    await expect(swallowing).rejects.toThrow(/rolled back/);
  });

  test('retries concurrent serializable increments until all are counted', async () => {
    await database.db.query("INSERT INTO counters VALUES ('serial', 0)");
    const increment = () =>
      database.db.transaction(async (tx) => {
        await tx.query('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
        const [row] = await tx.query<{ value: number }>("SELECT value FROM counters WHERE name = 'serial'");
        await tx.query("UPDATE counters SET value = $1 WHERE name = 'serial'", [(row?.value ?? 0) + 1]);
      });
    await Promise.all([increment(), increment(), increment()]);
    expect(await counter('serial')).toBe(3);
  });

  test('two transactions in a deadlock both succeed, because one of them is repeated', async () => {
    await database.db.query("INSERT INTO counters VALUES ('left', 0), ('right', 0)");
    const add = (tx: { query: TestDatabase['db']['query'] }, name: string) =>
      tx.query('UPDATE counters SET value = value + 1 WHERE name = $1', [name]);
    const crossing = (first: string, second: string) => {
      let tries = 0;
      return database.db.transaction(async (tx) => {
        tries += 1;
        await add(tx, first);
        if (tries === 1) await delay(100);
        await add(tx, second);
      });
    };
    await Promise.all([crossing('left', 'right'), crossing('right', 'left')]);
    expect([await counter('left'), await counter('right')]).toEqual([2, 2]);
  });

  test('fails if its connection is lost between two statements, and later statements use a new connection', async () => {
    const lost = database.db.transaction(async (tx) => {
      await tx.query('SELECT 1');
      await cutConnections();
      await tx.query('SELECT 1');
    });
    await expect(lost).rejects.toThrow();
    await vi.waitFor(async () => expect(await database.db.query('SELECT 1 AS one')).toEqual([{ one: 1 }]), {
      timeout: 60_000,
    });
  });
});

describe('listen', () => {
  test('delivers notices with their payload until listening stops', async () => {
    const seen: string[] = [];
    const stop = await database.db.listen('Test_Channel', (payload) => seen.push(payload));
    await database.db.query(`NOTIFY "Test_Channel", 'a'`);
    await vi.waitFor(() => expect(seen).toEqual(['a']), { timeout: 60_000 });
    stop();
    const others: string[] = [];
    await database.db.listen('Test_Channel', (payload) => others.push(payload));
    await database.db.query(`NOTIFY "Test_Channel", 'b'`);
    await vi.waitFor(() => expect(others).toEqual(['b']), { timeout: 60_000 });
    expect(seen).toEqual(['a']);
  });

  test('calls `onReconnect` after an outage, and then delivers notices again', async () => {
    const seen: string[] = [];
    let outages = 0;
    await database.db.listen(
      'outage',
      (payload) => seen.push(payload),
      () => {
        outages += 1;
      },
    );
    await cutConnections();
    await vi.waitFor(() => expect(outages).toBe(1), { timeout: 60_000 });
    await database.db.query("NOTIFY outage, 'after'");
    await vi.waitFor(() => expect(seen).toEqual(['after']), { timeout: 60_000 });
  });
});

describe('open', () => {
  test('fails within the time limit if there is no server', async () => {
    const opening = openDatabase({
      address: { connectionString: 'postgresql://nobody@127.0.0.1:1/none' },
      maxConnections: 1,
      log: silentLog,
      connectPatienceMs: 100,
    });
    await expect(opening).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('only the first statement of an outage waits for the server, and later statements fail at once', async () => {
    const config = {
      address: { connectionString: 'postgresql://nobody@127.0.0.1:1/none' },
      maxConnections: 1,
      log: silentLog,
      connectPatienceMs: 2_000,
    };
    const pool = makePool(config);
    const acquire = acquireFrom(pool, config);
    const took = async () => {
      const startedAt = performance.now();
      await expect(acquire()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
      return performance.now() - startedAt;
    };
    expect(await took()).toBeGreaterThan(1_990);
    expect(await took()).toBeLessThan(1_990);
    await pool.end();
  });

  test('refuses a database whose encoding is not UTF-8', async () => {
    const name = `runyard_test_latin_${process.pid}`;
    await database.db.pool.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
    const url = new URL(database.url);
    url.pathname = `/${name}`;
    await expect(
      openDatabase({ address: { connectionString: url.href }, maxConnections: 1, log: silentLog }),
    ).rejects.toThrow(/LATIN1/);
    await database.db.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
  });
});

describe('a connection that is lost', () => {
  test('fails the statement or the transaction in progress, and the next statement works on a new connection', async () => {
    const own = await openDatabase({ address: { connectionString: database.url }, maxConnections: 1, log: silentLog });
    const lost = { name: 'StoreUnavailable', reason: 'database' };
    const sleeping = own.query('SELECT pg_sleep(60)');
    const sleepers = () =>
      database.db.query(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep%' AND state = 'active'",
      );
    await expect.poll(sleepers).toHaveLength(1);
    await Promise.all([expect(sleeping).rejects.toMatchObject(lost), cutConnections()]);
    const committing = own.transaction(async (tx) => {
      await tx.query("INSERT INTO counters VALUES ('cut', 1)");
      await cutConnections();
    });
    await expect(committing).rejects.toMatchObject(lost);
    expect(await own.query("SELECT FROM counters WHERE name = 'cut'")).toEqual([]);
    await own.close();
  });

  test("does not change errors that the transaction's own work throws", async () => {
    const own = Object.assign(new Error('no such file'), { code: 'ENOENT' });
    await expect(database.db.transaction(() => Promise.reject(own))).rejects.toBe(own);
  });
});
