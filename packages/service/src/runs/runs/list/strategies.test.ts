import { randomUUIDv7 } from 'node:crypto';
import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../../test/database.ts';
import { insertTeam } from '../../../../test/executions.ts';
import { plannedByValues } from '../../../platform/store/database/planned-by-values.ts';
import { findPage } from './find-page.ts';
import { byIndex, byPages, inOrder, type PageRequest, readShortList, scan, walk, walkWide } from './strategies.ts';

const parent = randomUUIDv7();

/** Runs of all states. The runs in a sandbox have changed since they were created, and some runs are below another one. */
const database = closeAtEnd(await createTestDatabase());
const teamId = await insertTeam(database);
await database.db.query(
  `INSERT INTO runs (id, team_id, state, error_code, title, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
       conversation_id, current_execution_id, skill_spec, metadata, ancestor_ids, created_at, updated_at, ended_at, in_sandbox)
     SELECT CASE WHEN n = 40 THEN $2 ELSE id END, $1, state, CASE WHEN state = 'ERROR' THEN 'internal_error' END, 't' || n % 7, 'm' || n % 3, 'oz',
       'API', 'user', 'u' || n % 4, 'user', 'u', id, id, CASE WHEN n % 3 = 0 THEN 'o/r:s' || n % 2 END, jsonb_build_object('k', n % 5),
       CASE WHEN n % 9 = 4 THEN ARRAY[$2::uuid] ELSE '{}' END, at, at + (n * 37 % 11) * interval '1 minute',
       CASE WHEN state IN ('SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED') THEN at + interval '1 hour' END, 
         state IN ('PENDING', 'CLAIMED', 'INPROGRESS') OR n % 4 = 1 AND state <> 'QUEUED'
     FROM (SELECT n, gen_random_uuid() AS id, TIMESTAMPTZ '2026-01-01' + n * interval '1 minute' AS at, (ARRAY['QUEUED', 'PENDING', 'CLAIMED',
       'INPROGRESS', 'BLOCKED', 'SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED', 'SUCCEEDED'])[1 + n % 10] AS state FROM generate_series(1, 80) n) made`,
  [teamId, parent],
);
await database.db.query(
  `INSERT INTO executions (id, run_id, team_id, number, phase, pool, depth)
     SELECT id, id, team_id, 1, CASE WHEN state = 'QUEUED' THEN 'queued' WHEN in_sandbox THEN 'running' ELSE 'ended' END, '', cardinality(ancestor_ids)
     FROM runs WHERE team_id = $1`,
  [teamId],
);

const filters: Record<string, unknown>[] = [
  {},
  { state: ['SUCCEEDED'] },
  { state: ['FAILED', 'INPROGRESS'] },
  { state: ['QUEUED'] },
  { state: ['PENDING', 'CLAIMED'] },
  { task_status: ['running'] },
  { task_status: ['failed', 'running'], state: ['QUEUED', 'SUCCEEDED', 'ERROR'] },
  { error_code: ['internal_error'] },
  { error_code: ['internal_error', 'conflict'], state: ['ERROR', 'FAILED'] },
  { model_id: 'm1', creator: ['u1', 'u2'] },
  { metadata: { k: '3' }, state: ['BLOCKED', 'QUEUED'] },
  { ancestor_run_id: parent },
  { skill: 'o/r:s1', created_after: '2026-01-01T00:20:00Z' },
  { created_after: '2026-01-01T00:20:00Z', created_before: '2026-01-01T00:50:00Z' },
  { updated_after: '2026-01-01T00:40:00Z', model_id: 'm2' },
];
const orders = ['updated_at', 'created_at', 'title', 'agent'].flatMap((by) => [
  { sort_by: by, sort_order: 'asc' },
  { sort_by: by, sort_order: 'desc' },
]);

test.each(filters)('each strategy finds the same pages as a scan, or none, with the filters %o', async (filter) => {
  const { db } = database;
  const found = { walk: 0, wide: 0, list: 0 };
  for (const order of orders) {
    const query = ListRunsQuery.parse({ ...filter, ...order });
    let position: PageRequest['position'] = null;
    for (let page = 0; page < 3; page += 1) {
      const request: PageRequest = { teamId, query, position, count: 7, words: null };
      const expected = await plannedByValues(db, (tx) => scan(tx, request), byPages);
      for (const most of [3, 20, 100]) {
        const walked = await plannedByValues(db, (tx) => walk(tx, request, most), inOrder);
        if (Array.isArray(walked)) {
          expect(walked, `walk of ${most}, ${JSON.stringify(order)}`).toEqual(expected);
          found.walk += 1;
        } else if (walked.end !== null) {
          const wide = await plannedByValues(db, (tx) => walkWide(tx, request, walked, 100), byPages);
          if (wide) expect(wide, `wide walk after ${most}, ${JSON.stringify(order)}`).toEqual(expected);
          if (wide) found.wide += 1;
        }
      }
      for (const kind of ['filters', 'times'] as const) {
        const list = await plannedByValues(db, (tx) => readShortList(tx, request, kind), byIndex);
        if (list) expect(list, `list by ${kind}, ${JSON.stringify(order)}`).toEqual(expected);
        if (list) found.list += 1;
      }
      const last = expected.at(-1);
      if (!last) break;
      position = { id: last.id, value: last.sort_value };
    }
  }
  expect(found.walk).toBeGreaterThan(0);
  expect(found.wide).toBeGreaterThan(0);
  if (Object.keys(filter).length > 0) expect(found.list).toBeGreaterThan(0);
});

test('a run whose execution ended unnoticed stays in the list by last change', async () => {
  const { db } = database;
  const lost = `UPDATE executions SET phase = 'ended' WHERE team_id = $1 AND run_id = (SELECT id FROM runs WHERE team_id = $1 AND in_sandbox LIMIT 1)`;
  await db.query(lost, [teamId]);
  const query = ListRunsQuery.parse({ limit: 500 });
  const { rows } = await findPage(db, { teamId, query, position: null, count: 501 }, (tx, _, page) =>
    tx.query<{ id: string }>(page.text, page.values),
  );
  expect(new Set(rows.map(({ id }) => id)).size).toBe(80);
  expect(rows).toHaveLength(80);
});
