import { ListRunsQuery } from '@runyard/contract/run-list';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/database.ts';
import { insertTeam } from '../../../test/engine.ts';
import { walkAlong } from './walks.ts';

let database: TestDatabase;
let teamId: string;
/** Titles, the latest change first. */
let titles: string[];
/** Three hours of four runs each; by their ids they would come in another order. */
beforeAll(async () => {
  database = await createTestDatabase();
  teamId = await insertTeam(database);
  await database.db.query(
    `INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind,
       executor_uid, conversation_id, current_execution_id, metadata, created_at, updated_at)
     SELECT gen_random_uuid(), $1, 'SUCCEEDED', 'run ' || n, 'p', 'm', 'oz', 'API', 'user', 'u', 'user', 'u', gen_random_uuid(),
       gen_random_uuid(), '{"a": "b"}', at, at
     FROM (SELECT n, timestamptz '2026-03-01 12:59:00Z' - n / 4 * interval '1 hour' - n % 4 * interval '1 minute' AS at
       FROM generate_series(0, 11) n) times`,
    [teamId],
  );
  titles = Array.from({ length: 12 }, (_, n) => `run ${n}`);
});
afterAll(() => database.drop());

async function walked(
  order: 'asc' | 'desc',
  walk: Parameters<typeof walkAlong>[2]['walk'],
  length: number,
  count: number,
) {
  const query = ListRunsQuery.parse({ metadata: { a: 'b' }, source: 'API', sort_order: order });
  const page = await walkAlong(database.db, { teamId, query, position: null, count }, { walk, length }, null);
  if (!page) return null;
  const rows = await database.db.query<{ title: string }>(
    `SELECT r.title FROM (${page.text}) page JOIN runs r ON r.id = page.id ORDER BY page.sort_value ${order}`,
    page.values,
  );
  return rows.map(({ title }) => title);
}

describe.each(['desc', 'asc'] as const)('%s', (order) => {
  const expected = () => (order === 'desc' ? titles : titles.toReversed());

  test('a walk along a facet, which goes by hours, gives the runs of those hours only that it went through', async () => {
    const facet = { facet: 'metadata:a=b' };
    expect(await walked(order, facet, 6, 4)).toEqual(expected().slice(0, 4));
    expect(await walked(order, facet, 6, 5)).toBeNull();
    expect(await walked(order, facet, 11, 8)).toEqual(expected().slice(0, 8));
    expect(await walked(order, facet, 11, 9)).toBeNull();
  });

  test('a walk along a column gives all that it went through', async () => {
    expect(await walked(order, { filter: 'source' }, 6, 6)).toEqual(expected().slice(0, 6));
    expect(await walked(order, { filter: 'source' }, 6, 7)).toBeNull();
  });

  test('a walk to the end of its list gives what there is', async () => {
    expect(await walked(order, { facet: 'metadata:a=b' }, 13, 20)).toEqual(expected());
    expect(await walked(order, { filter: 'source' }, 13, 20)).toEqual(expected());
  });
});
