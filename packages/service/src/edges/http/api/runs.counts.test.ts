import { RunCounts } from '@runyard/contract/runs/run-counts';
import { beforeEach, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { countRuns } from '../../../runs/runs/list/count.ts';

const service = await openTestService();
const { db } = service.deps;
beforeEach(async () => {
  await db.query('DELETE FROM runs');
});

const counts = async (query = '', key?: string): Promise<RunCounts> =>
  RunCounts.parse(await service.ok('GET', `/agent/runs/counts?${query}`, key ? { key } : {}));

const change = (runId: string, state: string, createdAt = '2026-03-01T00:00:00Z') =>
  db.query('UPDATE runs SET state = $2, created_at = $3 WHERE id = $1', [runId, state, createdAt]);

test('GET /agent/runs/counts counts the runs of the team by state, with the filters of the list', async () => {
  const [a, b] = [await service.newRun({ config: { name: 'n' } }), await service.newRun(), await service.newRun()];
  await service.newRun({}, service.otherKey);
  await change(a, 'SUCCEEDED');
  await change(b, 'BLOCKED');
  expect(await counts()).toEqual({
    total: 3,
    is_exact: true,
    states: { SUCCEEDED: 1, BLOCKED: 1, QUEUED: 1 },
    spent_usd: 0,
  });
  expect((await counts('state=BLOCKED&state=QUEUED')).states).toEqual({ BLOCKED: 1, QUEUED: 1 });
  expect((await counts('name=n')).total).toBe(1);
  expect((await counts(`run_id=${a}&run_id=${b}`)).total).toBe(2);
  expect((await counts('q=nothing-has-this')).total).toBe(0);
  expect((await counts('created_after=2026-03-01T00:00:00Z')).total).toBe(1);
  expect((await counts('', service.otherKey)).total).toBe(1);
  expect((await counts('', await service.newKey({ role: 'viewer' }))).total).toBe(3);
});

test('GET /agent/runs/counts counts for each time step the runs that were created in this step', async () => {
  for (const [state, at] of [
    ['SUCCEEDED', '00:00:01'],
    ['FAILED', '00:14:59'],
    ['SUCCEEDED', '00:15:00'],
    ['SUCCEEDED', '00:45:00'],
  ] as const)
    await change(await service.newRun(), state, `2026-03-01T${at}Z`);
  const range = 'created_after=2026-03-01T00:00:00Z&created_before=2026-03-01T00:50:00%2B00:00';
  expect((await counts(`${range}&step=15m`)).steps).toEqual([
    { started_at: '2026-03-01T00:00:00.000Z', states: { SUCCEEDED: 1, FAILED: 1 } },
    { started_at: '2026-03-01T00:15:00.000Z', states: { SUCCEEDED: 1 } },
    { started_at: '2026-03-01T00:30:00.000Z', states: {} },
    { started_at: '2026-03-01T00:45:00.000Z', states: { SUCCEEDED: 1 } },
  ]);
  // The last step has the runs that are created while the request is answered.
  const now = new Date(Date.now() - 60_000);
  await service.newRun();
  const from = new Date(now.getTime() - 3_600_000).toISOString();
  const outcome = await countRuns(db, service.teamId, { created_after: from, step: '1h' }, now);
  expect(outcome).toMatchObject({ kind: 'ok', counts: { total: 1, steps: [{ states: { QUEUED: 1 } }] } });
  expect(
    (await counts(`step=1d&created_after=2026-03-02T00:00:00Z&created_before=2026-03-01T00:00:00Z`)).steps,
  ).toEqual([]);
});

test('GET /agent/runs/counts sums up the usage of the runs and of their descendants, and includes each run once', async () => {
  const root = await service.newRun();
  const child = await service.newRun({ parent_run_id: root });
  const grandchild = await service.newRun({ parent_run_id: child });
  const other = await service.newRun();
  await db.query(
    `INSERT INTO run_spend (run_id, spent_usd) VALUES ($1, 0.7), ($2, 0.3), ($3, 0.1), ($4, 0.05)
     ON CONFLICT (run_id) DO UPDATE SET spent_usd = excluded.spent_usd`,
    [root, child, grandchild, other],
  );
  expect((await counts()).spent_usd).toBe(0.75);
  expect((await counts(`ancestor_run_id=${root}`)).spent_usd).toBe(0.3);
  expect((await counts(`run_id=${root}&run_id=${grandchild}`)).spent_usd).toBe(0.7);
});

test('GET /agent/runs/counts reports that the numbers are not exact if more runs match than it counts', async () => {
  await db.query(
    `INSERT INTO runs (id, team_id, state, title, model_id, harness, source, creator_kind, creator_uid, executor_kind,
       executor_uid, conversation_id, current_execution_id, created_at, updated_at)
     SELECT id, $1, 'SUCCEEDED', 'a', 'runbook', 'oz', 'API', 'user', 'u', 'user', 'u', id, id, '2026-01-01', '2026-01-01'
     FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 1001)) ids`,
    [service.teamId],
  );
  expect(await counts()).toMatchObject({ total: 1000, is_exact: false, states: { SUCCEEDED: 1000 } });
  expect(await counts('updated_after=2025-12-31T00:00:00Z')).toMatchObject({ total: 1001, is_exact: true });
});

test.each([
  ['step=15m', 'step'],
  ['step=2m&created_after=2026-03-01T00:00:00Z', 'step'],
  ['step=1m&created_after=2026-03-01T00:00:00Z&created_before=2026-03-01T08:21:00Z', 'step'],
  ['step=1d&created_after=0001-01-01T00:00:00Z', 'step'],
  ['state=RUNNING', 'state.0'],
  ['ancestor_run_id=x', 'ancestor_run_id'],
])('GET /agent/runs/counts answers 400 for %s', async (query, path) => {
  const problem = await service.problem(400, 'GET', `/agent/runs/counts?${query}`);
  expect(problem.errors?.map((error) => error.path)).toContain(path);
});

test('GET /agent/runs/counts answers 403 for metadata if the team has disabled this filter', async () => {
  const set = (enabled: boolean) =>
    db.query('UPDATE teams SET metadata_filters_enabled = $2 WHERE id = $1', [service.teamId, enabled]);
  await set(false);
  await service.problem(403, 'GET', '/agent/runs/counts?metadata[a]=b');
  await set(true);
  expect((await counts('metadata[a]=b')).total).toBe(0);
});
