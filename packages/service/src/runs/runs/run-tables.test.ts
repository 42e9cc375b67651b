import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEmptyDatabase } from '../../../test/database.ts';
import { insertTeam } from '../../../test/executions.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { silentLog } from '../../platform/store/database/log.ts';
import { openDatabase } from '../../platform/store/database/open-database.ts';
import { migrateDatabase } from '../../platform/store/migrations/migrate.ts';
import { listRuns } from './list/list.ts';

/** The last migration before the tables of runs and requests. */
const before = 35;

let empty: Awaited<ReturnType<typeof createEmptyDatabase>>;
let db: Database;
let teamId: string;
let earlier: Record<string, unknown>[];
beforeAll(async () => {
  empty = await createEmptyDatabase();
  db = await openDatabase({ address: { connectionString: empty.url }, maxConnections: 2, log: silentLog });
  await migrateDatabase(db, { upTo: before });
  teamId = await insertTeam({
    db: { pool: { query: (text: string, values: unknown[]) => db.query(text, values) } },
  } as never);
  await fill();
  earlier = await db.query('SELECT to_jsonb(r) AS run FROM runs r ORDER BY id');
  await migrateDatabase(db);
}, 60_000);
afterAll(async () => {
  await db.close();
  await empty.drop();
});

/** Inserts a run in each state: queued, at work, waiting with and without a sandbox, and ended with and without one. */
async function fill(): Promise<void> {
  await db.query(
    `INSERT INTO runs (id, team_id, state, error_code, error_detail, retryable, open_request, status_message, created_at, updated_at, started_at,
       ended_at, title, prompt, config, name, model_id, harness, environment_id, skill_spec, source, creator_kind, creator_uid, executor_kind,
       executor_uid, contents, rights, metadata, ancestor_ids, conversation_id, current_execution_id, event_seq, detail_deleted_at)
     SELECT id, $1, state, CASE WHEN state IN ('FAILED', 'ERROR') THEN 'internal_error' END, CASE WHEN state = 'ERROR' THEN '{"a": 1}'::jsonb END,
       CASE WHEN state = 'ERROR' THEN true END, CASE WHEN state = 'BLOCKED' THEN '{"request_id": "q"}'::jsonb END, 'status ' || n,
       at, at + interval '5 minutes', at, CASE WHEN state IN ('SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED') THEN at + interval '5 minutes' END,
       'Title ' || n, 'Prompt word' || n, jsonb_build_object('n', n), 'name-' || n % 3, 'model', 'oz', CASE WHEN n % 2 = 0 THEN 'env' END,
       CASE WHEN n % 3 = 0 THEN 'o/r:s' END, 'API', 'user', 'u', 'user', 'u', CASE WHEN n = 5 THEN '[{"kind": "definition"}]'::jsonb ELSE '[]' END,
       '{"secrets": [], "withheld": [], "personal_credentials": true}', jsonb_build_object('number', n), '{}', id, id, n,
       CASE WHEN n = 6 THEN at + interval '1 hour' END
     FROM (SELECT n, gen_random_uuid() AS id, now() - n * interval '1 day' AS at, (ARRAY['QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED',
       'SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED', 'BLOCKED', 'SUCCEEDED'])[n] AS state FROM generate_series(1, 11) n) made`,
    [teamId],
  );
  await db.query(
    `INSERT INTO executions (id, run_id, team_id, number, phase, pool, transcript_bytes, ended_at)
     SELECT id, id, team_id, 1, CASE WHEN state = 'QUEUED' THEN 'queued' WHEN state = 'PENDING' THEN 'assigned' WHEN state = 'CLAIMED' THEN 'claimed'
       WHEN state = 'INPROGRESS' THEN 'running' WHEN event_seq = 5 THEN 'idle' WHEN event_seq = 11 THEN 'stopping' ELSE 'ended' END, '', 1, NULL FROM runs`,
  );
  await db.query(
    `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready)
     SELECT gen_random_uuid(), team_id, id, id, id, 'PLAN', '{}', event_seq = 7 FROM runs WHERE event_seq IN (7, 8)`,
  );
  await db.query(
    `INSERT INTO run_search (run_id, team_id, updated_hour, parts) SELECT id, team_id, run_hour(updated_at),
       mark_parts(search_mark(team_id, search_week(run_hour(updated_at))), search_parts(title, skill_spec, prompt)) FROM runs`,
  );
  await db.query('DELETE FROM run_search_waiting');
}

test('each run keeps all its values', async () => {
  const now = await db.query(
    `SELECT to_jsonb(r) || to_jsonb(q) AS run FROM runs r JOIN run_requests q ON q.run_id = r.id ORDER BY id`,
  );
  expect(now).toHaveLength(11);
  for (const [n, row] of now.entries()) expect(row).toMatchObject(earlier[n] ?? {});
});

test('exactly the runs with a live execution are in a sandbox, and the list sorts the others by their last change', async () => {
  const rows = await db.query<{ n: number }>(
    `SELECT event_seq::int AS n, in_sandbox, list_at = CASE WHEN in_sandbox THEN created_at ELSE updated_at END AS "isInPlace", has_detail FROM runs ORDER BY 1`,
  );
  const sandboxed = [2, 3, 4, 5, 11];
  expect(rows).toEqual(
    rows.map(({ n }) => ({ n, in_sandbox: sandboxed.includes(n), isInPlace: true, has_detail: [7, 8, 9].includes(n) })),
  );
});

const signer = { sign: () => 'signature', verify: () => true };

test.each([
  [{ state: ['SUCCEEDED'] }, [6, 11]],
  [{ state: ['BLOCKED'] }, [5, 10]],
  [{ state: ['INPROGRESS', 'QUEUED'] }, [1, 4]],
  [{ task_status: ['running'] }, [1, 2, 3, 4]],
  [{ error_code: ['internal_error'] }, [7, 8]],
  [{ metadata: { number: '8' } }, [8]],
  [{ name: 'name-1', environment_id: 'env' }, [4, 10]],
  [{ factory_only: true }, [5]],
  [{ artifact_type: 'PLAN' }, [7]],
  [{ q: 'word9' }, [9]],
  [{ q: 'titel 3' }, [3]],
])('the list of an upgraded database finds the runs of %o', async (filter, expected) => {
  const query = ListRunsQuery.parse({ ...filter, limit: 50, sort_order: 'desc' });
  const outcome = await listRuns(db, signer, { teamId, teamUid: 'x', baseUrl: '' }, query);
  if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
  expect(outcome.page.runs.map(({ title }) => Number(title.slice('Title '.length)))).toEqual(expected);
});

test('the counted bytes of the team are those of its rows', async () => {
  const bytes = () => db.query<{ bytes: string }>('SELECT coalesce(sum(bytes), 0)::text AS bytes FROM storage_changes');
  const counted = await bytes();
  await db.query('SELECT recount_team_storage()');
  expect(await bytes()).toEqual(counted);
  await db.query('DELETE FROM runs');
  expect(await bytes()).toEqual([{ bytes: '0' }]);
  expect(await db.query('SELECT FROM run_requests')).toEqual([]);
});
