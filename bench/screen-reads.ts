/** Reads that screens of the dashboard make in addition to lists and counts of runs, and the rows that they read. */
import { gzipSync } from 'node:zlib';
import { maxSavedViews, maxSchedules } from '@runyard/contract/limits';
import { type UsageDimension, UsageQuery } from '@runyard/contract/team/budgets';
import { listConnectedWorkers } from '../packages/service/src/edges/workers/connected.ts';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { readMessagePage } from '../packages/service/src/runs/conversations/page.ts';
import { readRunChanges } from '../packages/service/src/runs/files/changes/read.ts';
import { listSavedViews } from '../packages/service/src/team/saved-views/saved-views.ts';
import { readUsageReport } from '../packages/service/src/team/usage/report.ts';
import { testFilterOnDeliveries } from '../packages/service/src/triggers/automations/test-filter.ts';
import { readFactoryNames } from '../packages/service/src/triggers/factories/factories.ts';
import { readLastFires } from '../packages/service/src/triggers/history/list.ts';
import type { Seeded } from './list-seed.ts';

/** Number of events of the seeded conversation, which has 50 MB. */
const events = 20_000;
/** Number of stored deliveries of the webhook whose filter is tested. Each has a payload of 2 KB. */
const deliveries = 10_000;
const workers = 200;

/** SQL: the id of the schedule with the number `n`. Each schedule has started an equal part of the runs. */
const scheduleId = (n: string) => `('01900000-0000-7000-8000-2' || lpad((${n})::text, 11, '0'))::uuid`;

/** SQL statements that insert the rows of these screens. `$1` is the team. */
const statements = [
  `INSERT INTO users (id, uid, display_name) SELECT new_uuid_v7(), 'user-' || n, 'Person ' || n FROM generate_series(0, 199) n`,
  `INSERT INTO team_members (team_id, user_id, role) SELECT $1, id, 'member' FROM users`,
  `INSERT INTO saved_views (id, team_id, user_id, name, path, position)
   SELECT new_uuid_v7(), $1, u.id, 'View ' || n, '/runs?state=FAILED&model_id=model-' || n, n FROM users u, generate_series(1, ${maxSavedViews}) n`,
  `INSERT INTO schedules (id, team_id, name, cron_schedule, timezone, anchor_at, prompt, overlap, enabled, creator_kind, creator_uid,
     editor_kind, editor_uid)
   SELECT ${scheduleId('n')}, $1, 'Schedule ' || n, '0 * * * *', 'UTC', now(), 'Look.', 'allow', false, 'user', 'user-1', 'user', 'user-1'
   FROM generate_series(0, ${maxSchedules} - 1) n`,
  `INSERT INTO starts (id, schedule_id, due_at, outcome, run_id)
   SELECT id, ${scheduleId(`row_number() OVER () % ${maxSchedules}`)}, created_at, 'started', id FROM runs`,
  `INSERT INTO usage_days (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid, automation_uid, factory_uid,
     environment_uid, requests, input_tokens, output_tokens, cost_usd)
   SELECT $1, created_at::date, model_id, creator_kind, creator_uid, executor_kind, executor_uid, '',
     coalesce(metadata ->> 'factory_uid', ''), coalesce(environment_id, ''), count(*), 1000 * count(*), 100 * count(*), 0.1 * count(*)
   FROM runs GROUP BY 2, 3, 4, 5, 6, 7, 9, 10`,
  `INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, payload)
   SELECT new_uuid_v7(), 'webhook-1', $1, 'ACCEPTED', 2000,
     convert_to(jsonb_build_object('action', CASE WHEN n % 3 = 0 THEN 'failed' ELSE 'passed' END, 'log', repeat('words ', 330))::text, 'UTF8')
   FROM generate_series(1, ${deliveries}) n`,
  `INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, slots, sandbox, last_seen_at)
   SELECT new_uuid_v7(), new_uuid_v7(), 'worker-' || n, $1, 8, '{"backend": "gvisor", "features": ["user", "cgroup", "no-network"], "missing": []}',
     now() + interval '1 year' FROM generate_series(1, ${workers}) n`,
  `INSERT INTO conversation_events (run_id, seq, execution_id, event)
   SELECT r.id, n, r.id, jsonb_build_object('type', 'text', 'step_id', 's', 'message_id', 'm' || n, 'role', 'assistant', 'text', repeat('A word. ', 312))
   FROM (SELECT max(id::text)::uuid AS id FROM runs) r, generate_series(1, ${events}) n`,
  `UPDATE runs SET event_seq = ${events} WHERE id = (SELECT max(id::text)::uuid FROM runs)`,
];

/** A report of 300 changed files. The patch of each file has 2 KB. */
const changes = [
  {
    path: '',
    files: Array.from({ length: 300 }, (_, n) => ({
      path: `src/file-${n}.ts`,
      status: 'modified',
      additions: 40,
      deletions: 0,
      patch: `@@ -1,0 +1,40 @@\n${`+const line${n} = 'Some words of a line.';\n`.repeat(40)}`,
    })),
  },
];

/** Inserts the rows, unless a kept database already has them. The factories, automations and webhooks must be there. */
export async function seedScreens(db: Database, { teamId }: Seeded): Promise<void> {
  const [row] = await db.query<{ is_filled: boolean }>('SELECT EXISTS (SELECT FROM saved_views) AS is_filled');
  if (row?.is_filled) return;
  await db.onOwnConnection(async (client) => {
    await client.query('SET session_replication_role = replica');
    for (const statement of statements) await client.query(statement.replaceAll('$1', `'${teamId}'`));
    await client.query(
      'INSERT INTO run_changes (run_id, reported_at, content) SELECT max(id::text)::uuid, now(), $1 FROM runs',
      [gzipSync(JSON.stringify(changes))],
    );
    await client.query('VACUUM ANALYZE');
  });
}

/** Returns the reads, each with its name. */
export async function screenReads(db: Database, { teamId }: Seeded): Promise<[string, () => Promise<unknown>][]> {
  const signing = { sign: () => 'signature', verify: () => true };
  const [run] = await db.query<{ id: string }>('SELECT max(id::text) AS id FROM runs');
  const runId = run?.id ?? '';
  const schedules = await db.query<{ id: string }>('SELECT id FROM schedules');
  const ids = schedules.map(({ id }) => id);
  const page = (end?: number) =>
    readMessagePage(db, runId, { limit: 200, end: end === undefined ? undefined : { before: end, open: [] } });
  const factoryNamesOf = (team: string, uids: readonly string[]) => readFactoryNames(db, team, uids);
  const usage = (...group_by: UsageDimension[]) =>
    readUsageReport({ db, signing, factoryNamesOf, now: Date.now }, teamId, null, UsageQuery.parse({ group_by }));
  const test = (limit: number) =>
    testFilterOnDeliveries(
      db,
      { teamId, factoryUid: 'factory-2' },
      { filter: { action: ['failed'] }, webhook_uid: 'webhook-1', limit },
    );
  const person = { teamId, creator: { kind: 'user', uid: 'user-1', displayName: 'Person 1' } } as const;
  return [
    ['conversation of 50 MB, the last 200 messages', () => page()],
    ['conversation of 50 MB, 200 earlier messages', () => page(events / 2)],
    ['files changed, 300 files', () => readRunChanges(db, runId, false)],
    ['test of a filter, the last 20 deliveries', () => test(20)],
    ['test of a filter, the last 100 deliveries', () => test(100)],
    [`the last 30 fires of each of ${maxSchedules} schedules`, () => readLastFires(db, teamId, ids)],
    ['usage of 30 days, by day', () => usage('day')],
    ['usage of 30 days, by automation', () => usage('automation')],
    ['usage of 30 days, by factory', () => usage('factory')],
    ['usage of 30 days, by environment', () => usage('environment')],
    [`${workers} workers`, () => listConnectedWorkers(db, teamId)],
    [`saved views of a person, ${maxSavedViews}`, () => listSavedViews(db, person)],
  ];
}
