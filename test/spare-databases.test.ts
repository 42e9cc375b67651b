import pg from 'pg';
import { expect, it } from 'vitest';
import { createTestDatabase } from '../packages/service/test/database.ts';

const backend = 'SELECT pg_backend_pid() AS pid';

it('a test gets the database and the connection of the previous test, but none of its rows', async () => {
  const first = await createTestDatabase();
  const [before] = await first.db.query(backend);
  await first.db.query(`INSERT INTO teams (id, uid, name) VALUES (gen_random_uuid(), 'uid', 'Left')`);
  await first.drop();
  const second = await createTestDatabase();
  expect(second.url).toBe(first.url);
  expect(await second.db.query("SELECT FROM teams WHERE name = 'Left'")).toEqual([]);
  expect(await second.db.query(backend)).toEqual([before]);
  await second.drop();
});

it('an ended test cannot query the database of the next test or receive notices from it', async () => {
  const first = await createTestDatabase();
  const heard: string[] = [];
  const listenTo = async ({ db }: typeof first, name: string) => {
    await db.listen('spare_databases', (payload) => heard.push(`${name} ${payload}`));
  };
  await listenTo(first, 'first');
  await first.drop();
  await expect(first.db.query('SELECT 1')).rejects.toThrow('after calling end');
  await expect(first.db.transaction(async () => 1)).rejects.toThrow('after calling end');
  const second = await createTestDatabase();
  await second.db.query("SELECT pg_notify('spare_databases', 'from before it listens')");
  await listenTo(second, 'second');
  await second.db.query("SELECT pg_notify('spare_databases', 'notice')");
  await expect.poll(() => heard).toEqual(['second notice']);
  await second.drop();
});

it('the next test gets the database only after the running statements of an ended test', async () => {
  const { db, drop } = await createTestDatabase();
  const order: string[] = [];
  const work = db.transaction(async (tx) => {
    await tx.query('SELECT pg_sleep(0.05)');
    await tx.query('SELECT 1');
    order.push('committed');
  });
  await Promise.all([drop().then(() => order.push('dropped')), work]);
  expect(order).toEqual(['committed', 'dropped']);
});

it('a database is dropped although a program of the test is still connected to it', async () => {
  const first = await createTestDatabase();
  const program = new pg.Client({ connectionString: first.url });
  const lost = new Promise<Error>((resolve) => program.on('error', resolve));
  await program.connect();
  await first.drop();
  expect((await lost).message).toContain('terminat');
  const second = await createTestDatabase();
  expect(second.url).not.toBe(first.url);
  await second.drop();
});

it('only a few connections of a test stay open for the next test', async () => {
  const first = await createTestDatabase();
  await Promise.all(Array.from({ length: 8 }, () => first.db.query('SELECT pg_sleep(0.02)')));
  await first.drop();
  const second = await createTestDatabase();
  expect(second.db.pool.totalCount).toBeLessThanOrEqual(4);
  await second.drop();
});
