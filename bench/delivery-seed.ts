/** The deliveries that `delivery-plans.test.ts` lists: the deliveries of a busy team, and a few of another team. */
import type { Database } from '../packages/service/src/platform/store/database/database.ts';

export interface SeededDeliveries {
  readonly teamId: string;
  /** A team with three deliveries. */
  readonly quietTeamId: string;
}

const teamId = '01900000-0000-7000-8000-000000000001';
const quietTeamId = '01900000-0000-7000-8000-000000000002';

/**
 * SQL expression for the UUIDv7 of the delivery or start with number `n`. The times in the ids are evenly spread over the last 30 days,
 * in the order of `n`.
 */
const idOf = (count: number, random: string): string =>
  `(lpad(to_hex((extract(epoch FROM now()) * 1000 - (${count} - n) * (30.0 * 86400000 / ${count}))::bigint), 12, '0')
    || '7' || left(md5(n || '${random}'), 3) || '8' || right(md5(n || '${random}'), 15))::uuid`;

/**
 * Writes deliveries of 30 days for 100 webhooks of 10 factories; some of the webhooks get most of the deliveries. Of 100 deliveries, 2
 * are duplicates, 3 are refused, and a third of the others starts a run. There are 50 kinds of events: event 0 is the most frequent,
 * and event 49 is very rare.
 */
export async function seedDeliveries(db: Database, count: number): Promise<SeededDeliveries> {
  const statements = `
    SET session_replication_role = replica;
    INSERT INTO teams (id, uid, name) VALUES ('${teamId}', 'BenchBenchBenchBench22', 'Busy'), ('${quietTeamId}', 'BenchBenchBenchBench23', 'Quiet');
    INSERT INTO factories (uid, team_id, name)
      SELECT 'factory-' || n, CASE WHEN n = 0 THEN '${quietTeamId}' ELSE '${teamId}' END::uuid, 'Plant ' || n FROM generate_series(0, 10) n;
    INSERT INTO webhooks (uid, factory_uid, team_id, name, auth_mode, secret_name, enabled)
      SELECT 'webhook-' || n, CASE WHEN n = 0 THEN 'factory-0' ELSE 'factory-' || 1 + n % 10 END,
        CASE WHEN n = 0 THEN '${quietTeamId}' ELSE '${teamId}' END::uuid, 'Alerts ' || n, 'token', '', false FROM generate_series(0, 100) n;
    INSERT INTO automations (uid, factory_uid, team_id, name, prompt, enabled, triggers, overlap, creator_kind, creator_uid, editor_kind, editor_uid)
      SELECT 'automation-' || n, 'factory-' || 1 + n % 10, '${teamId}', 'Look into ' || n, repeat('Look. ', 200), true, '[]', 'allow',
        'user', 'u', 'user', 'u' FROM generate_series(1, 200) n;
    INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, provider_event, identity, identity_hash, runs, outcomes, received_at)
      SELECT id, CASE WHEN n % (${count} / 3) = 7 THEN 'webhook-0' ELSE 'webhook-' || 1 + floor(100 * power(r, 3)) END,
        CASE WHEN n % (${count} / 3) = 7 THEN '${quietTeamId}' ELSE '${teamId}' END::uuid,
        CASE WHEN n % 100 < 2 THEN 'DUPLICATE' WHEN n % 100 < 4 THEN 'REJECTED_AUTH' WHEN n % 100 < 5 THEN 'REJECTED_INVALID_JSON' ELSE 'ACCEPTED' END,
        2000, CASE WHEN n % 100 BETWEEN 2 AND 4 THEN NULL WHEN n % 10007 = 99 THEN 'event-49' ELSE 'event-' || floor(49 * power(r2, 3)) END,
        md5(n::text), sha256(n::text::bytea), CASE WHEN n % 3 = 0 AND n % 100 > 4 THEN ARRAY[id::text] ELSE '{}' END,
        jsonb_build_array(jsonb_build_object('automation_id', 'automation-' || 1 + n % 200, 'matched', n % 3 = 0, 'reason', repeat('why not ', 20))),
        to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
      FROM (SELECT n, ${idOf(count, 'd')} AS id, (hashint4(n) & 65535) / 65536.0 AS r, (hashint4(n + 77) & 65535) / 65536.0 AS r2
        FROM generate_series(1, ${count}) n) seeded;
    INSERT INTO starts (id, automation_uid, webhook_uid, delivery_id, outcome, run_id)
      SELECT ${idOf(count, 's')}, 'automation-' || 1 + floor(200 * power((hashint4(n) & 65535) / 65536.0, 3)), 'webhook-1', ${idOf(count, 'd')},
        CASE WHEN n % 6 = 0 THEN 'started' ELSE 'skipped' END, CASE WHEN n % 6 = 0 THEN ${idOf(count, 'd')} END
      FROM generate_series(3, ${count}, 3) n`;
  await db.onOwnConnection(async (client) => {
    for (const statement of statements.split(';')) await client.query(statement);
    await client.query('VACUUM ANALYZE');
  });
  return { teamId, quietTeamId };
}
