import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../../test/database.ts';
import { insertTeam } from '../../../../test/executions.ts';
import { createdByChange } from './created-by-change.ts';
import { filtersOf } from './filters.ts';
import { sortMatchesQuery } from './find-page.ts';
import type { PageQuery, PageRequest } from './page-query.ts';
import { readShortList, walkList, walkMatches, walkSkills, walkSort } from './walk-sort.ts';

let database: TestDatabase;
let teamId: string;
/** Creates 200 runs, with 20 minutes between them. Some change minutes after their creation, some after hours, some after weeks. */
beforeAll(async () => {
  database = await createTestDatabase();
  teamId = await insertTeam(database);
  await database.db.query(
    `INSERT INTO runs (id, team_id, state, title, prompt, model_id, harness, source, creator_kind, creator_uid, executor_kind,
       executor_uid, conversation_id, current_execution_id, skill_spec, metadata, created_at, updated_at)
     SELECT gen_random_uuid(), $1, (ARRAY['FAILED', 'SUCCEEDED', 'ERROR'])[1 + n % 3], 't' || n * 37 % 50, 'p', 'm', 'oz',
       (ARRAY['API', 'CLI'])[1 + n % 2], 'user', 'u', 'user', 'u', gen_random_uuid(), gen_random_uuid(),
       CASE WHEN n % 4 > 0 THEN 's' || n % 4 END, jsonb_build_object('a', (n % 5 < 4)::text, 'b', (n % 7 < 6)::text), at,
       at + (ARRAY['2 minutes', '40 minutes', '3 minutes', '8 hours', '4 minutes', '20 days', '1 minute', '2 days'])[1 + n % 8]::interval
     FROM (SELECT n, timestamptz '2026-03-01 00:00:00Z' + n * interval '20 minutes' AS at FROM generate_series(1, 200) n) times`,
    [teamId],
  );
});
afterAll(() => database.drop());

const a = { a: 'true' };
const queries: Record<string, Record<string, unknown>> = {
  'one column': { source: ['API'] },
  'several states and two pairs of metadata': { metadata: { ...a, b: 'true' }, state: ['FAILED', 'ERROR'] },
  'a creation between two times': { created_after: '2026-03-01T08:00:00Z', created_before: '2026-03-02T15:00:00Z' },
  'a state, and times': {
    state: ['SUCCEEDED'],
    created_before: '2026-03-02T15:00:00Z',
    updated_after: '2026-03-01T20:00:00Z',
  },
};
const sorts = (['created_at', 'title', 'agent'] as const).flatMap((by) =>
  (['asc', 'desc'] as const).map((order) => [by, order] as const),
);

/** The strategies, with limits so small that these tests often reach them. */
const strategies: Record<string, (request: PageRequest) => Promise<PageQuery | null>[]> = {
  'a short list': (request) => [readShortList(database.db, request, 90, null)],
  'a walk along the sort': (request) => [walkSort(database.db, request, 60, null)],
  'a walk along the sort with the ids of a list': (request) => [
    walkList(database.db, request, { length: 12, longest: 1000 }, null),
  ],
  'a walk along the skills': (request) =>
    request.query.sort_by === 'agent' ? [walkSkills(database.db, request, 60, null)] : [],
  'a sort of the matches': (request) => [
    walkMatches(database.db, request, null, undefined, { sorted: 500, walked: 1000 }),
  ],
  'a walk along the sort with the ids of the matches': (request) => [
    walkMatches(database.db, request, null, undefined, { sorted: 0, walked: 1000 }),
  ],
  'a list by change': (request) => {
    if (request.query.sort_by !== 'created_at') return [];
    const { facets, columns } = filtersOf(request.query);
    const lists = [...facets.map((facet) => ({ facet })), ...columns.map((filter) => ({ filter })), { filter: null }];
    return lists.map((list) =>
      createdByChange(database.db, request, { kind: 'created_by_change', list, length: 60 }, null),
    );
  },
};

const keysOf = async ({ text, values }: PageQuery) => {
  const rows = await database.db.query<{ id: string; sort_value: string | null }>(text, values);
  return rows.map(({ id, sort_value: value }) => ({ id, value }));
};

test.each(Object.keys(strategies))(
  '%s, where it finds a page, finds the same runs as a sort of all matches',
  async (name) => {
    let found = 0;
    let missed = 0;
    for (const [filters, given] of Object.entries(queries)) {
      for (const [sort_by, sort_order] of sorts) {
        const query = ListRunsQuery.parse({ ...given, sort_by, sort_order });
        let position: PageRequest['position'] = null;
        for (let page = 0; page < 2; page += 1) {
          const request: PageRequest = { teamId, query, position, count: 9 };
          const expected = await keysOf(sortMatchesQuery(request));
          for (const query of await Promise.all(strategies[name]?.(request) ?? [])) {
            if (query === null) missed += 1;
            else {
              found += 1;
              expect(await keysOf(query), `${filters}, ${sort_by} ${sort_order}, page ${page}`).toEqual(expected);
            }
          }
          const last = expected.at(-1);
          if (!last) break;
          position = { ...last, isSimilar: false };
        }
      }
    }
    expect(found).toBeGreaterThan(3);
    if (!name.includes('matches')) expect(missed).toBeGreaterThan(0);
  },
);
