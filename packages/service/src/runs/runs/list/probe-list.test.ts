import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../../test/database.ts';
import { insertTeam } from '../../../../test/executions.ts';
import { probeList } from './probe-list.ts';
import type { FilterList } from './strategies.ts';

let database: TestDatabase;
let teamId: string;
/** Titles of the runs, in the order of their last change, the latest first. */
let titles: string[];
/** There are three hours with four runs each. The order of the random ids is not the order of the changes. */
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

/** Returns the titles of the page's runs, in order; null if the probe does not find the page. */
async function probe(order: 'asc' | 'desc', list: FilterList, length: number, count: number) {
  const query = ListRunsQuery.parse({ metadata: { a: 'b' }, source: ['API'], sort_order: order });
  const request = { teamId, query, position: null, count };
  const page = await probeList(database.db, request, { kind: 'probe_list', list, length }, null);
  if (!page) return null;
  const rows = await database.db.query<{ title: string }>(
    `SELECT r.title FROM (${page.text}) page JOIN runs r ON r.id = page.id ORDER BY page.sort_value ${order}`,
    page.values,
  );
  return rows.map(({ title }) => title);
}

describe.each(['desc', 'asc'] as const)('in the order %s,', (order) => {
  const expected = () => (order === 'desc' ? titles : titles.toReversed());

  test("a probe of a facet's list, which is sorted by hour, returns only runs of hours that were read completely", async () => {
    const facet = { facet: ['metadata:a=b'] };
    expect(await probe(order, facet, 6, 4)).toEqual(expected().slice(0, 4));
    expect(await probe(order, facet, 6, 5)).toBeNull();
    expect(await probe(order, facet, 11, 8)).toEqual(expected().slice(0, 8));
    expect(await probe(order, facet, 11, 9)).toBeNull();
  });

  test("a probe of a column's list returns all runs that were read", async () => {
    expect(await probe(order, { filter: 'source' }, 6, 6)).toEqual(expected().slice(0, 6));
    expect(await probe(order, { filter: 'source' }, 6, 7)).toBeNull();
  });

  test('a probe returns all matches when it reads the list to its end', async () => {
    expect(await probe(order, { facet: ['metadata:a=b'] }, 13, 20)).toEqual(expected());
    expect(await probe(order, { facet: ['metadata:a=c', 'metadata:a=b'] }, 13, 20)).toEqual(expected());
    expect(await probe(order, { filter: 'source' }, 13, 20)).toEqual(expected());
  });
});
