import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../../test/database.ts';
import { insertTeam } from '../../../../test/executions.ts';
import { sortMatchesQuery } from './find-page.ts';
import { intersectQuery } from './intersect-lists.ts';
import type { PageQuery } from './page-query.ts';

let database: TestDatabase;
let teamId: string;
/** Creates 200 runs, with 20 minutes between them. Each value of a filter occurs together with each value of the other filters. */
beforeAll(async () => {
  database = await createTestDatabase();
  teamId = await insertTeam(database);
  await database.db.query(
    `INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind,
       executor_uid, conversation_id, current_execution_id, metadata, created_at, updated_at)
     SELECT gen_random_uuid(), $1, (ARRAY['FAILED', 'SUCCEEDED', 'ERROR'])[1 + n % 3], 't', 'p', 'm', 'oz',
       'API', 'user', (ARRAY['u', 'v'])[1 + n % 2], 'user', 'u', gen_random_uuid(), gen_random_uuid(),
       jsonb_build_object('a', (n % 5 < 4)::text, 'b', (n % 7 < 6)::text), at - interval '90 minutes', at
     FROM (SELECT n, timestamptz '2026-03-01 00:00:00Z' + n * interval '20 minutes' AS at FROM generate_series(1, 200) n) times`,
    [teamId],
  );
});
afterAll(() => database.drop());

const idsOf = async ({ text, values }: PageQuery) =>
  (await database.db.query<{ id: string; sort_value: string }>(text, values)).map(({ id, sort_value }) => ({
    value: sort_value,
    id,
    isSimilar: false,
  }));

const a = { a: 'true' };
const queries = {
  'two columns': { state: ['FAILED'], creator: ['u'] },
  'two columns and metadata': { state: ['FAILED'], creator: ['v'], metadata: a },
  'two pairs of metadata and states': { metadata: { ...a, b: 'true' }, state: ['FAILED', 'ERROR'] },
  'columns between two times': {
    state: ['SUCCEEDED'],
    creator: ['u'],
    created_after: '2026-03-01T06:10:00Z',
    created_before: '2026-03-03T01:00:00Z',
  },
};

describe.each(['desc', 'asc'] as const)('an intersection of lists in the order %s', (sort_order) => {
  test.each(Object.entries(queries))(
    'finds the same pages as a sort of all matches, for filters by %s',
    async (_, filters) => {
      const query = ListRunsQuery.parse({ ...filters, sort_order });
      let position = null;
      for (let page = 0; page < 3; page += 1) {
        const request = { teamId, query, position, count: 7 };
        const intersected = await idsOf(intersectQuery(request));
        expect(intersected).toEqual(await idsOf(sortMatchesQuery(request)));
        expect(intersected.length).toBeGreaterThan(0);
        position = intersected.at(-1) ?? null;
      }
    },
  );
});
