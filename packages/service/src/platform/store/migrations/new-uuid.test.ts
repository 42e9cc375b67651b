import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';

const database = closeAtEnd(await createTestDatabase());

test('ids that SQL statements create are UUIDs of version 7, unique, and in the order of their creation', async () => {
  const before = Date.now();
  const rows = await database.db.query<{ id: string }>('SELECT new_uuid_v7() AS id FROM generate_series(1, 5000)');
  const ids = rows.map(({ id }) => id);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(new Set(ids).size).toBe(5000);
  // The characters after the first 18 are random.
  const times = ids.map((id) => id.slice(0, 18));
  expect(times).toEqual(times.toSorted());
  expect(new Set(times).size).toBeGreaterThan(500);
  const madeAt = ids.map((id) => Number.parseInt(id.slice(0, 13).replace('-', ''), 16));
  // The database and this process use the same clock, but the database may read it in coarser steps.
  expect(Math.min(...madeAt)).toBeGreaterThanOrEqual(before - 1);
  expect(Math.max(...madeAt)).toBeLessThanOrEqual(Date.now() + 1);
});
