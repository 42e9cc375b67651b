import { ListRunsQuery } from '@runyard/contract/run-list';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../store/test-database.ts';
import { type Days, windowsFor } from './list-windows.ts';
import { insertTeam } from './test-engine.ts';

const runs = 4000;

let database: TestDatabase;
let teamId: string;
/** One run for each quarter of an hour of the last six weeks. */
beforeAll(async () => {
  database = await createTestDatabase();
  teamId = await insertTeam(database);
  await database.db.query(
    `INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind,
       executor_uid, conversation_id, current_execution_id, created_at, updated_at)
     SELECT gen_random_uuid(), $1, 'SUCCEEDED', 't', 'p', 'm', 'oz', 'API', 'user', 'u', 'user', 'u', gen_random_uuid(),
       gen_random_uuid(), at, at FROM (SELECT now() - n * interval '15 minutes' AS at FROM generate_series(1, $2::int) n) times`,
    [teamId, runs],
  );
});
afterAll(() => database.drop());

const look = async (order: 'asc' | 'desc', tier: 'exact' | 'similar', share: number) => {
  const query = ListRunsQuery.parse({ q: 'x', sort_order: order });
  return await windowsFor(database.db, { teamId, query, position: null, count: 51 }, tier, { shares: [share], share });
};

/** How many runs lie in these days, and whether they are the first of the list. */
async function within(days: Days, order: 'asc' | 'desc') {
  const [row] = await database.db.query<{ count: number; last: number }>(
    `SELECT count(*)::int AS count, max(place)::int AS last FROM (
       SELECT updated_at, row_number() OVER (ORDER BY updated_at ${order}, id ${order}) AS place FROM runs WHERE team_id = $1
     ) placed WHERE $2::int[] IS NULL OR run_days($1, run_hour(updated_at)) && $2::int[]`,
    [teamId, days],
  );
  return { count: row?.count ?? 0, areTheFirst: row?.count === row?.last };
}

describe.each(['desc', 'asc'] as const)('the looks of a search, %s', (order) => {
  test('reach over the first runs of the list without a gap, ever farther, at last over all', async () => {
    const windows = await look(order, 'exact', 0.5);
    const found = await Promise.all(windows.map((days) => within(days, order)));
    expect(found.map(({ areTheFirst }) => areTheFirst)).toEqual([true, true, true, true]);
    const [near = 0, ...others] = found.map(({ count }) => count);
    expect(near).toBeGreaterThanOrEqual(1000);
    expect(near).toBeLessThan(1300);
    expect(others).toEqual([runs, runs, runs]);
    expect(windows.at(-1)).toBeNull();
  });

  test('never reach over all runs for words that are only similar, where there are a great many', async () => {
    expect(await look(order, 'similar', 0.5)).not.toContain(null);
    expect(await look(order, 'similar', 0.001)).toEqual([null]);
  });
});
