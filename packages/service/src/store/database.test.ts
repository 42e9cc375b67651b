import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from './test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test('a fresh test database has the tables of the migrations', async () => {
  const rows = await database.db.query<{ name: string }>('SELECT name FROM schema_migrations');
  expect(rows.length).toBeGreaterThan(0);
});
